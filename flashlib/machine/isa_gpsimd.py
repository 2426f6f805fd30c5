"""Instructions of the gpsimd engine: index patterns and masks by index (chapter 16).

Both evaluate ``offset + partition * channel_multiplier + sum(index * step)`` in
32-bit integers for every element. Neither can touch PSUM.
"""

from collections.abc import Sequence

import numpy as np

from flashlib.errors import FreeSizeError
from flashlib.machine import rules
from flashlib.machine.dtypes import as_float32
from flashlib.machine.instruction import SBUF, Cost, Issue, instruction
from flashlib.machine.operators import COMPARISONS, named
from flashlib.machine.tile import Tile

_COST = Cost("150 + N", lambda r: 150 + r.n)


def _affine_values(
    dst: Tile, pattern: Sequence[Sequence[int]], offset: int, channel_multiplier: int
) -> np.ndarray:
    """Values of the index pattern, int32 ``[partitions, elements]``."""
    free = np.zeros(1, np.int64)
    for step, num in pattern:
        free = (free[:, None] + step * np.arange(num)).reshape(-1)
    channel = np.arange(dst.partitions, dtype=np.int64)[:, None] * channel_multiplier
    return (offset + channel + free).astype(np.int32)


def _check_pattern(pattern: Sequence[Sequence[int]], dst: Tile, dims: int) -> None:
    pairs = [tuple(p) for p in pattern]
    if not 1 <= len(pairs) <= dims or any(
        len(p) != 2 or not all(isinstance(x, (int, np.integer)) for x in p) or p[1] < 1
        for p in pairs
    ):
        raise FreeSizeError(
            f"pattern is {list(pattern)}; expected 1 to {dims} pairs [step, num] of "
            "integers; an index pattern is 4-d at most"
        )
    n = int(np.prod([num for _, num in pairs], dtype=np.int64))
    if n != dst.free_size:
        raise FreeSizeError(
            f"pattern has {n} elements; expected {dst.free_size} like dst; one value "
            "per element; adapt the counts of the pattern"
        )


@instruction(
    engines=("gpsimd",),
    memory={"dst": SBUF},
    cost=_COST,
    limits=("pattern: up to 4 pairs [step, num], as many elements as dst",),
)
def iota(
    issue: Issue,
    dst: Tile,
    pattern: Sequence[Sequence[int]],
    offset: int = 0,
    channel_multiplier: int = 0,
):
    """Write an index pattern.

    Partition ``p`` counts from 0 at the first partition of dst.
    """
    _check_pattern(pattern, dst, issue.spec.pattern_dims_max)
    return lambda: _affine_values(dst, pattern, offset, channel_multiplier)


@instruction(
    engines=("gpsimd",),
    memory={"dst": SBUF, "on_true_tile": SBUF},
    cost=_COST,
    limits=(
        "pattern: up to 4 pairs [step, num], as many elements as dst",
        "cmp_op: equal, less, less_equal, greater, greater_equal",
    ),
)
def affine_select(
    issue: Issue,
    dst: Tile,
    pattern: Sequence[Sequence[int]],
    channel_multiplier: int,
    on_true_tile: Tile,
    on_false_value: float,
    cmp_op: str = "equal",
    offset: int = 0,
):
    """Keep elements whose index value compares true with 0, fill the others."""
    compare = named(COMPARISONS, cmp_op, "cmp_op")
    rules.same_partitions(on_true_tile=on_true_tile, dst=dst)
    rules.same_free_size(on_true_tile=on_true_tile, dst=dst)
    _check_pattern(pattern, dst, issue.spec.pattern_dims_max)
    fill = rules.constant("on_false_value", on_false_value)

    def selected() -> np.ndarray:
        index = _affine_values(dst, pattern, offset, channel_multiplier)
        keep = compare(index, 0) != 0
        return np.where(keep, as_float32(rules.rows(on_true_tile)), fill)

    return selected
