"""Instructions of the gpsimd engine: index patterns and masks by index (chapter 16).

Both evaluate ``offset + partition * channel_multiplier + sum(index * step)`` in
32-bit integers for every element. Neither can touch PSUM.
"""

import math
from collections.abc import Sequence

import numpy as np

from flashlib.errors import FreeSizeError, shown
from flashlib.machine import rules
from flashlib.machine.dtypes import as_float32
from flashlib.machine.indexing import whole
from flashlib.machine.instruction import SBUF, Cost, Issue, Meaning, instruction
from flashlib.machine.operators import COMPARISONS, named
from flashlib.machine.pattern import checked_pattern
from flashlib.machine.tile import Tile

__all__ = ["affine_select", "iota"]

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


def _indices(
    pattern: Sequence[Sequence[int]],
    offset: int,
    channel_multiplier: int,
    dst: Tile,
    dims: int,
) -> tuple[tuple, int, int]:
    """Check an index pattern against dst; return it in plain integers."""
    pairs = checked_pattern(pattern)
    if len(pairs) > dims:
        raise FreeSizeError(
            f"pattern has {shown(pattern)}; expected 1 to {dims} pairs [step, num] of "
            "integers; an index pattern is 4-d at most; join neighboring pairs"
        )
    n = math.prod(num for _, num in pairs)
    if n != dst.free_size:
        raise FreeSizeError(
            f"pattern has {n} elements; expected {dst.free_size} like dst; one value "
            "per element; adapt the counts of the pattern"
        )
    multiplier = whole("channel_multiplier", channel_multiplier)
    return pairs, whole("offset", offset), multiplier


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
) -> Meaning:
    """Write an index pattern.

    Partition ``p`` counts from 0 at the first partition of dst.
    """
    dims = issue.spec.pattern_dims_max
    indices = _indices(pattern, offset, channel_multiplier, dst, dims)
    return lambda: _affine_values(dst, *indices)


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
) -> Meaning:
    """Keep elements whose index value compares true with 0, fill the others."""
    compare = named(COMPARISONS, cmp_op, "cmp_op")
    rules.same_partitions(on_true_tile=on_true_tile, dst=dst)
    rules.same_free_size(on_true_tile=on_true_tile, dst=dst)
    dims = issue.spec.pattern_dims_max
    indices = _indices(pattern, offset, channel_multiplier, dst, dims)
    fill = rules.constant("on_false_value", on_false_value)

    def selected() -> np.ndarray:
        index = _affine_values(dst, *indices)
        keep = compare(index, 0) != 0
        return np.where(keep, as_float32(rules.rows(on_true_tile)), fill)

    return selected
