"""Exercises on intensity, on layout and on who works longest (chapter 16)."""

from collections.abc import Callable

import numpy as np

from flashlib.exercises.answers import ch16 as answers
from flashlib.exercises.exercise import (
    Exercise,
    Step,
    expect,
    expect_close,
    expect_numbers,
)
from flashlib.experiments.decode_work import decode_work
from flashlib.machine import NC_V3
from flashlib.machine.machine import Machine
from flashlib.machine.tile import Tile

# n_heads, n_kv_heads, new tokens, bytes of one number
CASES = ((16, 8, 1, 2), (64, 8, 1, 2), (64, 8, 4, 2), (64, 8, 1, 4), (64, 8, 4, 1))
WIDTH, BLOCK = 128, 128


# ---- 16.1 ----------------------------------------------------------------------------


def _test_five(answer: object) -> None:
    expect_numbers(answer, (5,), "flop per byte of each call")


def _test_bf16(answer: object) -> None:
    expect_close(answer[:3], [2, 8, 32], "the first three, all in 2 bytes")


def _test_bytes(answer: object) -> None:
    expect_close(answer[3:], [4, 64], "the last two, in 4 bytes and in 1")


def five_intensities() -> list[float]:
    """Divide 4 g s n d operations by 2 n d b bytes."""
    return [2 * (16 // 8) * 1 / 2, 2 * 8 / 2, 2 * 8 * 4 / 2, 2 * 8 / 4, 2 * 8 * 4 / 1]


intensities = Exercise(
    number="16.1",
    title="Five intensities",
    stars=1,
    steps=(
        Step("five numbers", _test_five),
        Step("with 2 bytes it is the group times the tokens", _test_bf16),
        Step("fewer bytes, more operations for each", _test_bytes),
    ),
    solution=five_intensities,
    wrong={
        "heads_for_group": [16, 64, 256, 32, 512],
        "tokens_forgotten": [2, 8, 8, 4, 16],
        "bytes_forgotten": [2, 8, 32, 8, 32],
        "one_product": [1, 4, 16, 2, 32],
        "three_only": [2, 8, 32],
        "all_in_two_bytes": [2, 8, 32, 8, 64],
    },
    value=True,
    right={"an_array": np.array([2, 8, 32, 4, 64])},
)

# ---- 16.2 ----------------------------------------------------------------------------


def _called(answer: Callable, columns: int = 8) -> tuple[Tile, np.ndarray, Machine]:
    """Call an answer with one block of keys; return also what it should hold."""
    rng, m = np.random.default_rng(16), Machine()
    shapes = (16, columns), (16, BLOCK), (BLOCK, 24)
    q, k, v = (0.3 * rng.standard_normal(s).astype(np.float32) for s in shapes)
    out = answer(m, *(m.sbuf.put(x) for x in (q, k, v)))
    expect(
        isinstance(out, Tile),
        f"the answer is of the type {type(out).__name__}; expected 1 tensor of the "
        "machine, a Tile",
    )
    return out, v.T.astype(np.float64) @ np.exp(k.T.astype(np.float64) @ q), m


def _test_shape(answer: Callable) -> None:
    out, want, _ = _called(answer)
    expect(
        out.shape == want.shape,
        f"the result is {list(out.shape)}; expected {list(want.shape)}, the width of v "
        "on the partitions",
    )


def _test_value(answer: Callable) -> None:
    for columns in (1, 8, 200):
        out, want, _ = _called(answer, columns)
        expect_close(out.numpy(), want, f"{columns} columns: the sums", 1e-3, 1e-5)


def _test_no_transpose(answer: Callable) -> None:
    counts = _called(answer)[2].trace.histogram()
    moved = {op: n for op, n in counts.items() if "transpose" in op}
    expect(not moved, f"the trace has {moved}; expected 0 transposes")


def _test_counts(answer: Callable) -> None:
    trace = _called(answer)[2].trace
    counts = trace.histogram()
    got = counts.get("nc_matmul", 0), counts.get("activation", 0)
    expect(got == (2, 1), f"the trace has {got} products and exponentials, not (2, 1)")
    lanes = next(r for r in trace if r.op == "activation").writes[0].shape[0]
    expect(lanes == BLOCK, f"the exponential runs on {lanes} lanes; expected {BLOCK}")


def weigh(m: Machine, q: Tile, k: Tile, v: Tile) -> Tile:
    """Let keys stand still, then values: keys stay on the partitions in between."""
    columns, keys = q.shape[1], k.shape[1]
    scores = m.isa.nc_matmul(m.psum.alloc((keys, columns)), k, q)
    p = m.isa.activation(m.sbuf.alloc((keys, columns)), "exp", scores)
    return m.isa.nc_matmul(m.psum.alloc((v.shape[1], columns)), v, p)


def _upright(m: Machine, q: Tile, k: Tile, v: Tile) -> Tile:
    columns, keys = q.shape[1], k.shape[1]
    scores = m.isa.nc_matmul(m.psum.alloc((columns, keys)), q, k)
    p = m.isa.activation(m.sbuf.alloc((columns, keys)), "exp", scores)
    return m.isa.nc_matmul(m.psum.alloc((v.shape[1], columns)), v, p)


def _upright_turned(m: Machine, q: Tile, k: Tile, v: Tile) -> Tile:
    columns, keys = q.shape[1], k.shape[1]
    out = m.psum.alloc((v.shape[1], columns))
    for a in range(0, columns, 128):
        part = q[:, a : min(a + 128, columns)]
        n = part.shape[1]
        scores = m.isa.nc_matmul(m.psum.alloc((n, keys)), part, k)
        p = m.isa.activation(m.sbuf.alloc((n, keys)), "exp", scores)
        turned = m.isa.nc_transpose(m.psum.alloc((keys, n)), p, engine="tensor")
        still = m.isa.tensor_copy(m.sbuf.alloc((keys, n)), turned)
        m.isa.nc_matmul(out[:, a : a + n], v, still)
    return out


def _values_move(m: Machine, q: Tile, k: Tile, v: Tile) -> Tile:
    columns, keys = q.shape[1], k.shape[1]
    scores = m.isa.nc_matmul(m.psum.alloc((keys, columns)), k, q)
    p = m.isa.activation(m.sbuf.alloc((keys, columns)), "exp", scores)
    return m.isa.nc_matmul(m.psum.alloc((columns, v.shape[1])), p, v)


def _no_exponential(m: Machine, q: Tile, k: Tile, v: Tile) -> Tile:
    columns, keys = q.shape[1], k.shape[1]
    scores = m.isa.nc_matmul(m.psum.alloc((keys, columns)), k, q)
    p = m.isa.tensor_copy(m.sbuf.alloc((keys, columns)), scores)
    return m.isa.nc_matmul(m.psum.alloc((v.shape[1], columns)), v, p)


def _first_half(m: Machine, q: Tile, k: Tile, v: Tile) -> Tile:
    return weigh(m, q, k[:, :64], v[:64])


layout = Exercise(
    number="16.2",
    title="The layout that needs no transpose",
    stars=2,
    steps=(
        Step("the program runs and returns a tensor", _called),
        Step("the width of v lies on the partitions", _test_shape),
        Step("the sums are right for 1, 8 and 200 columns", _test_value),
        Step("nothing is transposed on the way", _test_no_transpose),
        Step("two products, one exponential on all lanes", _test_counts),
    ),
    solution=weigh,
    wrong={
        "upright": _upright,
        "upright_and_turned": _upright_turned,
        "values_move": _values_move,
        "no_exponential": _no_exponential,
        "half_the_keys": _first_half,
        **answers.LAYOUT_WRONG,
    },
    right=answers.LAYOUT_RIGHT,
)

# ---- 16.3 ----------------------------------------------------------------------------


def _work(columns: int) -> tuple[float, float]:
    """Run the decode program; return nanoseconds of the products and bytes per ns."""
    found = decode_work(columns, tokens=1, keys=BLOCK)
    return found["products"], found["cache_bytes"] / found["load K and V"]


def _at(answer: Callable, rate: float, want: int | None, what: str) -> None:
    got = answer(rate)
    expect(
        got == want, f"{what}, {rate:.4g} bytes per ns: {got} columns; expected {want}"
    )


def _test_fast(answer: Callable) -> None:
    _at(answer, 2000.0, 1, "a memory so fast that one column keeps up")


def _test_peak(answer: Callable) -> None:
    _at(answer, NC_V3.dma_peak_bytes_per_ns(), 164, "all DMA engines at their peak")


def _test_slow(answer: Callable) -> None:
    _at(answer, 115.0, 512, "a slower memory")


def _test_machine(answer: Callable) -> None:
    _on_machine(answer, _work(1)[1])


def _test_other_rates(answer: Callable) -> None:
    for rate in (250.0, 400.0, 550.0, 700.0):
        _on_machine(answer, rate)


def _on_machine(answer: Callable, rate: float) -> None:
    """Run the decode program with the answer, and with one column less."""
    got = answer(rate)
    expect(got in range(2, 513), f"{rate:.4g} bytes per ns: {got}; expected 2 to 512")
    load = 2 * BLOCK * WIDTH * 2 / rate
    below, above = _work(got - 1)[0], _work(got)[0]
    expect(
        below < load <= above,
        f"at {rate:.4g} bytes per ns loading a block takes {load:.1f} ns; "
        f"{got - 1} columns multiply for {below:.1f} ns, and {got} for {above:.1f} ns",
    )


def crossing(bytes_per_ns: float) -> int:
    """Count up until the products of a block take as long as loading it."""
    load = 2 * 128 * 128 * 2 / bytes_per_ns
    for c in range(1, 513):
        sums = sum(min(64, c - start) for start in range(0, c, 128))
        if (2 * max(64, c) + sums) / 2.4 >= load:
            return c
    return 512


def _no_floor(bytes_per_ns: float) -> int:
    load = 2 * 128 * 128 * 2 / bytes_per_ns
    return next((c for c in range(1, 513) if 3 * c / 2.4 >= load), 512)


def _no_sum(bytes_per_ns: float) -> int:
    load = 2 * 128 * 128 * 2 / bytes_per_ns
    return next((c for c in range(1, 513) if 2 * max(64, c) / 2.4 >= load), 512)


def _sum_in_one_piece(bytes_per_ns: float) -> int:
    load = 2 * 128 * 128 * 2 / bytes_per_ns
    for c in range(1, 513):
        if (2 * max(64, c) + min(64, c)) / 2.4 >= load:
            return c
    return 512


def _ridge(bytes_per_ns: float) -> int:
    return min(512, round(2 * 128 * 128 * 2.4 / bytes_per_ns))


def _in_cycles(bytes_per_ns: float) -> int:
    return crossing(2.4 * bytes_per_ns)


def _below(bytes_per_ns: float) -> int:
    return max(1, crossing(bytes_per_ns) - 1)


cross = Exercise(
    number="16.3",
    title="Where the square overtakes the memory",
    stars=3,
    steps=(
        Step("one column is enough when memory is fast", _test_fast),
        Step("the DMA engines at their peak", _test_peak),
        Step("512 columns when it never happens", _test_slow),
        Step("the machine itself crosses there", _test_machine),
        Step("so it does with memories in between", _test_other_rates),
    ),
    solution=crossing,
    wrong={
        "no_floor_of_64": _no_floor,
        "no_sum": _no_sum,
        "sum_in_one_piece": _sum_in_one_piece,
        "the_ridge": _ridge,
        "in_cycles": _in_cycles,
        "one_too_few": _below,
        **answers.CROSS_WRONG,
    },
    right=answers.CROSS_RIGHT,
)

EXERCISES = (intensities, layout, cross)
