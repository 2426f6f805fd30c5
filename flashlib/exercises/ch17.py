"""Exercises on sums over partitions and what they cost (chapter 17)."""

from collections.abc import Callable
from functools import cache

import ml_dtypes
import numpy as np

from flashlib.exercises.answers import ch17 as answers
from flashlib.exercises.exercise import (
    Exercise,
    Step,
    expect,
    expect_close,
    expect_numbers,
)
from flashlib.machine import timeline
from flashlib.machine.machine import Machine
from flashlib.machine.tile import Tile
from flashlib.programs import blocks

WAYS = blocks.SUM_VARIANTS
MOVING, STATIONARY, BESIDE = WAYS


# ---- 17.1 ----------------------------------------------------------------------------


def _test_three(answer: object) -> None:
    expect_numbers(answer, (3,), "cycles that each way adds")


def _test_moving(answer: object) -> None:
    expect_close(answer[0], 256, "ones moving, 32 blocks of min(64, 8) cycles: it")


def _test_stationary(answer: object) -> None:
    expect_close(answer[1], 2048, "ones stationary, 32 blocks of max(64, 8) cycles: it")


def _test_beside(answer: object) -> None:
    expect_close(answer[2], 0, "ones beside values, 65 columns for 64: it")


def three_costs() -> list[int]:
    """Count the cycles that each way adds over 32 blocks."""
    return [32 * min(64, 8), 32 * max(64, 8), 32 * (64 - 64)]


costs = Exercise(
    number="17.1",
    title="What the sum adds",
    stars=1,
    steps=(
        Step("three numbers", _test_three),
        Step("p stands still, one column moves", _test_moving),
        Step("a square of ones stands still, p moves", _test_stationary),
        Step("one more column stands still", _test_beside),
    ),
    solution=three_costs,
    wrong={
        "per_block": [8, 64, 0],
        "one_cycle_each": [32, 256, 0],
        "floor_everywhere": [2048, 2048, 0],
        "square_by_columns": [256, 256, 0],
        "beside_costs_a_column": [256, 2048, 32],
        "two_only": [256, 2048],
    },
    value=True,
    right={"an_array": np.array([256.0, 2048.0, 0.0])},
)

# ---- 17.2 ----------------------------------------------------------------------------


def _spread(answer: Callable, rows: int, columns: int, dtype: type = np.float32):
    """Call an answer on ``[rows, columns]``; return result, sums and machine."""
    rng, m = np.random.default_rng(17), Machine()
    x = rng.uniform(0, 1, (rows, columns)).astype(dtype)
    out = answer(m, m.sbuf.put(x))
    expect(isinstance(out, Tile), f"the answer is {out!r}; expected a tensor, 1 Tile")
    return out, x.astype(np.float64).sum(axis=0), m


def _test_everywhere(answer: Callable) -> None:
    out, sums, _ = _spread(answer, 128, 8)
    expect(
        out.shape == (128, 8),
        f"the result is {list(out.shape)}; expected [128, 8], the sums on 128 lanes",
    )
    expect_close(out.numpy(), np.tile(sums, (128, 1)), "the rows", 1e-3, 1e-5)


def _test_wide(answer: Callable) -> None:
    out, sums, _ = _spread(answer, 128, 500)
    expect_close(out.numpy()[77], sums, "row 77 of 500 columns", 1e-3, 1e-5)


def _test_few_rows(answer: Callable) -> None:
    out, sums, _ = _spread(answer, 60, 4)
    expect(
        out.shape == (128, 4),
        f"60 rows give {list(out.shape)}; expected [128, 4], the sums on 128 lanes",
    )
    expect_close(out.numpy()[127], sums, "row 127 of the sums of 60 rows", 1e-3, 1e-5)


def _test_narrow_type(answer: Callable) -> None:
    for dtype in (ml_dtypes.bfloat16, np.float16):
        out, sums, _ = _spread(answer, 128, 4, dtype)
        what = f"row 0 in {np.dtype(dtype).name}"
        expect_close(out.numpy()[0], sums, what, 1e-3, 1e-5)


def _test_one_product(answer: Callable) -> None:
    counts = _spread(answer, 128, 8)[2].trace.histogram()
    others = {op: n for op, n in counts.items() if op not in ("nc_matmul", "memset")}
    got = counts.get("nc_matmul", 0)
    expect(
        got == 1 and not others,
        f"the trace has {got} products and {others}; expected 1 and nothing else but "
        "a memset",
    )
    expect(
        "memset" in counts,
        "the trace has 0 memsets; expected 1, because the ones are made on the machine",
    )


def sum_everywhere(m: Machine, x: Tile) -> Tile:
    """Let a block of ones stand still: every column of it sums once."""
    rows, columns = x.shape
    ones = m.isa.memset(m.sbuf.alloc((rows, 128), x.dtype), 1.0)
    return m.isa.nc_matmul(m.psum.alloc((128, columns)), ones, x)


spread = Exercise(
    number="17.2",
    title="The sum, on every partition",
    stars=2,
    steps=(
        Step("the sums of 8 columns stand on all 128 partitions", _test_everywhere),
        Step("500 columns at once", _test_wide),
        Step("fewer rows than partitions", _test_few_rows),
        Step("bfloat16 and float16", _test_narrow_type),
        Step("one product, and a memset for the ones", _test_one_product),
    ),
    solution=sum_everywhere,
    wrong=answers.SPREAD_WRONG,
    right=answers.SPREAD_RIGHT,
)

# ---- 17.3 ----------------------------------------------------------------------------


@cache
def _added(way: str, width: int, columns: int) -> int:
    """Run one block on the machine with and without the sum; return the difference."""
    m = Machine()
    dtype = ml_dtypes.bfloat16
    p = m.sbuf.put(np.ones((128, 1, columns), dtype))
    values = m.sbuf.put(np.ones((128, 1, width + (way == BESIDE)), dtype))
    blocks.sum_beside_values(m, p, values)
    if way != BESIDE:
        blocks.sum_by_matmul(m, p, way)
    events = timeline(m.trace).events
    cycles = sum(e.cycles for e in events if e.engine == "tensor")
    return int(cycles) - max(min(64, width), columns)


def _cheapest(answer: Callable, width: int, columns: int) -> None:
    """Accept any way that costs the least on the machine, with its cycles."""
    legal = WAYS if width < 128 else WAYS[:2]
    real = {way: _added(way, width, columns) for way in legal}
    got = answer(width, columns)
    expect(
        isinstance(got, (tuple, list)) and len(got) == 2 and got[0] in WAYS,
        f"the answer is {got!r}; expected the name of a variant and its cycles, such "
        f"as {(MOVING, 3)}; the names are {', '.join(map(repr, WAYS))}",
    )
    way, cycles = got
    what = f"width {width}, {columns} columns: {way}"
    expect(way in real, f"{what}; {width} + 1 columns do not fit into 128")
    expect(
        cycles == real[way], f"{what}, {cycles} cycles; the machine adds {real[way]}"
    )
    least = min(real.values())
    expect(real[way] == least, f"{what} adds {real[way]} cycles; {least} is possible")


def _test_64(answer: Callable) -> None:
    for columns in (1, 8, 128):
        _cheapest(answer, 64, columns)


def _test_128(answer: Callable) -> None:
    for columns in (1, 8, 64, 128):
        _cheapest(answer, 128, columns)


def _test_127(answer: Callable) -> None:
    _cheapest(answer, 127, 8)


def _test_small(answer: Callable) -> None:
    for width in (16, 40, 63):
        for columns in (1, 4, 50, 100):
            _cheapest(answer, width, columns)


def cheapest(head_dim_v: int, columns: int) -> tuple[str, int]:
    """Compare max(min(64, M), N) of each product with what it replaces."""
    plain = max(min(64, head_dim_v), columns)
    ways = {
        "ones moving": max(min(64, columns), 1),
        "ones stationary": max(64, columns),
    }
    if head_dim_v + 1 <= 128:
        ways["ones beside values"] = max(min(64, head_dim_v + 1), columns) - plain
    way = min(ways, key=ways.get)
    return way, ways[way]


def _always_moving(head_dim_v: int, columns: int) -> tuple[str, int]:
    return MOVING, min(64, columns)


def _always_beside(head_dim_v: int, columns: int) -> tuple[str, int]:
    return BESIDE, 0


def _beside_below_128(head_dim_v: int, columns: int) -> tuple[str, int]:
    return (BESIDE, 0) if head_dim_v < 128 else (MOVING, min(64, columns))


def _beside_up_to_64(head_dim_v: int, columns: int) -> tuple[str, int]:
    return cheapest(head_dim_v if head_dim_v <= 64 else 128, columns)


def _no_floor(head_dim_v: int, columns: int) -> tuple[str, int]:
    return (BESIDE, 0) if head_dim_v < 128 else (STATIONARY, columns)


def _one_cycle(head_dim_v: int, columns: int) -> tuple[str, int]:
    return (BESIDE, 0) if head_dim_v < 128 else (MOVING, 1)


cheap = Exercise(
    number="17.3",
    title="Cheapest for d = 64 and for d = 128",
    stars=3,
    steps=(
        Step("width 64", _test_64),
        Step("width 128", _test_128),
        Step("width 127, the last that has room", _test_127),
        Step("small widths", _test_small),
    ),
    solution=cheapest,
    wrong={
        "always_moving": _always_moving,
        "always_beside": _always_beside,
        "beside_is_always_free": _beside_below_128,
        "beside_up_to_64": _beside_up_to_64,
        "no_floor": _no_floor,
        "one_cycle": _one_cycle,
        **answers.CHEAP_WRONG,
    },
    right=answers.CHEAP_RIGHT,
)

EXERCISES = (costs, spread, cheap)
