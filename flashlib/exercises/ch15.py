"""Exercises on shapes, transposes and products of any size (chapter 15)."""

from collections.abc import Callable
from math import ceil

import numpy as np

from flashlib.exercises.answers import ch15 as answers
from flashlib.exercises.exercise import (
    Exercise,
    Step,
    expect,
    expect_close,
    expect_numbers,
)
from flashlib.machine.machine import Machine
from flashlib.machine.tile import Tile

# One block of 128 keys of width 64, eight query heads, values of width 64.
KEYS, HEADS, WIDTH = 128, 8, 64


# ---- 15.1 ----------------------------------------------------------------------------


def _test_three(answer: object) -> None:
    expect_numbers(answer, (3, 3), "K, M, N for each of three products")


def _test_contraction(answer: object) -> None:
    got = [int(row[0]) for row in answer]
    want = [WIDTH, KEYS, KEYS]
    expect(
        got == want,
        f"K is {got}; expected {want}: scores contract over the width, the other two "
        "over the keys",
    )


def _test_limits(answer: object) -> None:
    for name, (k, m, n) in zip(("scores", "sum", "values"), answer, strict=True):
        expect(
            k <= 128 and m <= 128 and n <= 512,
            f"{name} has K, M, N = {k}, {m}, {n}; at most 128, 128, 512 are legal",
        )


def _test_shapes(answer: object) -> None:
    for name, got, want in zip(
        ("scores", "sum", "values"), answer, three_products(), strict=True
    ):
        expect(
            tuple(got) == want, f"{name} is {tuple(got)}; expected (K, M, N) = {want}"
        )


def three_products() -> list[tuple[int, int, int]]:
    """Read K, M, N off the operands: [K, M] stands still, [K, N] moves."""
    scores = 64, 128, 8  # keys [64, 128] still, queries [64, 8] moving
    total = 128, 8, 1  # p [128, 8] still, ones [128, 1] moving
    values = 128, 64, 8  # V [128, 64] still, p [128, 8] moving
    return [scores, total, values]


shapes = Exercise(
    number="15.1",
    title="Three products, three shapes",
    stars=1,
    steps=(
        Step("three products, each with K, M and N", _test_three),
        Step("K is what lies on the partitions of both operands", _test_contraction),
        Step("each product is within 128, 128, 512", _test_limits),
        Step("M stands still, N moves", _test_shapes),
    ),
    solution=three_products,
    wrong={
        "outputs_only": [(128, 8), (8, 1), (64, 8)],
        "contraction_last": [(128, 8, 64), (8, 1, 128), (64, 8, 128)],
        "operands_swapped": [(64, 8, 128), (128, 1, 8), (128, 8, 64)],
        "ones_stand_still": [(64, 128, 8), (128, 1, 8), (128, 64, 8)],
        "scores_over_keys": [(128, 64, 8), (128, 8, 1), (128, 64, 8)],
        **answers.SHAPES_WRONG,
    },
    value=True,
    right=answers.SHAPES_RIGHT,
)

# ---- 15.2 ----------------------------------------------------------------------------


def _flipped(answer: Callable, x: np.ndarray) -> tuple[Tile, Machine]:
    m = Machine()
    tile = m.sbuf.put(x)
    out = answer(m, tile)
    expect(isinstance(out, Tile), f"the answer is {out!r}; expected a tensor, 1 Tile")
    return out, m


def _matrix(rows: int, columns: int) -> np.ndarray:
    return np.random.default_rng(15).standard_normal((rows, columns)).astype(np.float32)


def _test_square(answer: Callable) -> None:
    x = _matrix(4, 4)
    out, _ = _flipped(answer, x)
    expect_close(out.numpy(), x.T, "the transpose of a 4 x 4 tile", 0.0, 0.0)


def _test_oblong(answer: Callable) -> None:
    for shape in ((3, 5), (128, 8), (8, 128)):
        x = _matrix(*shape)
        out, _ = _flipped(answer, x)
        expect_close(out.numpy(), x.T, f"the transpose of a {shape} tile", 0.0, 0.0)


def _test_one_product(answer: Callable) -> None:
    out, m = _flipped(answer, _matrix(128, 8))
    expect(out.memory == "psum", f"128 x 8 ends in {out.memory}; expected psum")
    counts = m.trace.histogram()
    expect(
        counts == {"nc_matmul": 1},
        f"the trace has {counts}; expected {{'nc_matmul': 1}}",
    )
    (product,) = m.trace
    shapes = [list(read.shape) for read in product.reads]
    expect([128, 8] in shapes, f"the product reads {shapes}, and not x, [128, 8]")


def transpose(m: Machine, x: Tile) -> Tile:
    """Let x stand still and the identity move: x.T @ I."""
    rows, columns = x.shape
    identity = m.sbuf.put(np.eye(rows, dtype=np.float32))
    return m.isa.nc_matmul(m.psum.alloc((columns, rows)), x, identity)


def _identity_still(m: Machine, x: Tile) -> Tile:
    rows, columns = x.shape
    identity = m.sbuf.put(np.eye(rows, dtype=np.float32))
    return m.isa.nc_matmul(m.psum.alloc((rows, columns)), identity, x)


def _wide_identity(m: Machine, x: Tile) -> Tile:
    rows, columns = x.shape
    identity = m.sbuf.put(np.eye(columns, dtype=np.float32))
    return m.isa.nc_matmul(m.psum.alloc((columns, rows)), x, identity)


def _in_numpy(m: Machine, x: Tile) -> Tile:
    return m.sbuf.put(x.numpy().T)


flip = Exercise(
    number="15.2",
    title="Transpose with a product",
    stars=2,
    steps=(
        Step("a square tile is transposed", _test_square),
        Step("so is a tile that is not square", _test_oblong),
        Step("by one product and nothing else", _test_one_product),
    ),
    solution=transpose,
    wrong={
        "identity_stands_still": _identity_still,
        "identity_of_the_wrong_size": _wide_identity,
        "in_numpy": _in_numpy,
        **answers.FLIP_WRONG,
    },
    right=answers.FLIP_RIGHT,
)

# ---- 15.3 ----------------------------------------------------------------------------


def _product(answer: Callable, k: int, m: int, n: int) -> Machine:
    a, b = _matrix(k, m), _matrix(k, n)
    machine = Machine()
    out = answer(machine, a, b)
    exact = a.astype(np.float64).T @ b
    expect_close(out, exact, f"a.T @ b for K, M, N = {k}, {m}, {n}", 1e-3, 1e-4)
    return machine


def _test_small(answer: Callable) -> None:
    _product(answer, 128, 128, 512)


def _test_wide(answer: Callable) -> None:
    _product(answer, 100, 130, 700)


def _test_deep(answer: Callable) -> None:
    _product(answer, 300, 20, 30)


def _test_count(answer: Callable) -> None:
    for k, m, n in ((300, 130, 700), (128, 256, 512)):
        trace = _product(answer, k, m, n).trace
        got = trace.histogram().get("nc_matmul", 0)
        want = ceil(k / 128) * ceil(m / 128) * ceil(n / 512)
        expect(got == want, f"K, M, N = {k}, {m}, {n}: {got} products; expected {want}")


def _test_inside(answer: Callable) -> None:
    trace = _product(answer, 300, 130, 700).trace
    windows = {(r.writes[0].tensor.id, r.writes[0].region) for r in trace}
    expect(
        len(windows) == 4,
        f"K, M, N = 300, 130, 700: the products write {len(windows)} places; 4 windows "
        "are enough if PSUM adds up the pieces of K",
    )


def _test_banks(answer: Callable) -> None:
    machine = _product(answer, 20, 140, 5000)
    free, used = len(machine.psum.free_banks), machine.sbuf.used
    expect(free == 8, f"{free} banks are free at the end; expected 8")
    expect(used == 0, f"{used} bytes of SBUF are in use at the end; expected 0")


def any_product(m: Machine, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Cut M and N into windows; inside each, add over the pieces of K in one bank."""
    (depth, rows), columns = a.shape, b.shape[1]
    out = np.empty((rows, columns), np.float32)
    for i in range(0, rows, 128):
        for j in range(0, columns, 512):
            with m.sbuf.scope(), m.psum.scope():
                high, wide = min(128, rows - i), min(512, columns - j)
                window = m.psum.alloc((high, wide))
                for k in range(0, depth, 128):
                    still = m.sbuf.put(a[k : k + 128, i : i + 128])
                    moving = m.sbuf.put(b[k : k + 128, j : j + 512])
                    m.isa.nc_matmul(window, still, moving)
                out[i : i + 128, j : j + 512] = window.numpy()
    return out


def _in_one(m: Machine, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    out = m.psum.alloc((a.shape[1], b.shape[1]))
    return m.isa.nc_matmul(out, m.sbuf.put(a), m.sbuf.put(b)).numpy()


def _overwrites(m: Machine, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    out = np.empty((a.shape[1], b.shape[1]), np.float32)
    for i in range(0, a.shape[1], 128):
        for j in range(0, b.shape[1], 512):
            with m.sbuf.scope(), m.psum.scope():
                left, right = a[:, i : i + 128], b[:, j : j + 512]
                window = m.psum.alloc((left.shape[1], right.shape[1]))
                for k in range(0, len(a), 128):
                    still = m.sbuf.put(left[k : k + 128])
                    moving = m.sbuf.put(right[k : k + 128])
                    m.isa.nc_matmul(window, still, moving, accumulate=False)
                out[i : i + 128, j : j + 512] = window.numpy()
    return out


def _narrow(m: Machine, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    parts = [any_product(m, a, b[:, j : j + 128]) for j in range(0, b.shape[1], 128)]
    return np.concatenate(parts, axis=1)


def _keeps_banks(m: Machine, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    m.psum.alloc((128, 1))
    return any_product(m, a, b)


def _in_numpy_too(m: Machine, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a.T @ b


anysize = Exercise(
    number="15.3",
    title="A product of any size",
    stars=3,
    steps=(
        Step("one full window, 128 by 128 by 512", _test_small),
        Step("more rows and columns than a window has", _test_wide),
        Step("more to add up than there are partitions", _test_deep),
        Step("no more products than needed", _test_count),
        Step("the pieces of K add up in PSUM", _test_inside),
        Step("every bank is given back", _test_banks),
    ),
    solution=any_product,
    wrong={
        "in_one": _in_one,
        "overwrites": _overwrites,
        "narrow_windows": _narrow,
        "keeps_banks": _keeps_banks,
        "in_numpy": _in_numpy_too,
        **answers.ANYSIZE_WRONG,
    },
    right=answers.ANYSIZE_RIGHT,
)

EXERCISES = (shapes, flip, anysize)
