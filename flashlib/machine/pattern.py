"""Check access patterns ``[[step, num], ...]`` and hold indirect ones (chapter 15).

Steps count elements. On chip the first pair walks partitions, the others walk the
elements inside each.
"""

import itertools
import math
import operator
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from flashlib.errors import FreeSizeError, OutOfBoundsError, PartitionError, shown
from flashlib.machine.indexing import FIELD

if TYPE_CHECKING:
    from flashlib.machine.tile import Tile

__all__ = ["Gather", "checked_pattern", "extent", "resolve", "revisits"]


def checked_pattern(pattern: Sequence[Sequence[int]]) -> tuple[tuple[int, int], ...]:
    """Return ``((step, num), ...)`` of plain integers, or refuse."""
    try:
        pairs = tuple((operator.index(s), operator.index(n)) for s, n in pattern)
    except (TypeError, ValueError):
        pairs = ()
    if not pairs or any(n < 1 or not -FIELD <= s < FIELD for s, n in pairs):
        raise FreeSizeError(
            f"pattern has {shown(pattern)}; expected [[step, num], ...] of integers "
            "with num >= 1; steps count elements; write [[1, n]] for n elements side "
            "by side"
        )
    return pairs


def resolve(
    base: "Tile", pattern: tuple[tuple[int, int], ...], offset: int
) -> int | None:
    """Check a static pattern against a tensor; return its first partition.

    ``base`` is the tile of the whole tensor; in HBM there is no partition.
    """
    if not base.on_chip:
        _inside(pattern, offset, base.free_size)
        return None
    row = base.free_size
    (step, rows), free = pattern[0], pattern[1:]
    start, at = divmod(offset, row)
    if step != row and rows > 1:
        raise PartitionError(
            f"pattern[0] has step {step}; expected {row}, one partition; partitions of "
            "a window are contiguous; move rows with a dma or a shuffle"
        )
    if not 0 <= start <= base.partitions - rows:
        raise OutOfBoundsError(
            f"pattern has partitions {start} to {start + rows - 1}; expected 0 to "
            f"{base.partitions - 1}; the tensor has {base.partitions} partitions; "
            "lower offset or the first count"
        )
    _inside(free, at, row)
    return start


def _inside(pattern: tuple[tuple[int, int], ...], at: int, limit: int) -> None:
    low, high = extent(pattern)
    if at + low < 0 or at + high >= limit:
        raise OutOfBoundsError(
            f"pattern has elements {at + low} to {at + high}; expected 0 to "
            f"{limit - 1}; offset and pattern stay inside the tensor; lower offset, a "
            "step or a count"
        )


def extent(pattern: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Lowest and highest element of a pattern, relative to its first."""
    low = sum(min(0, s * (n - 1)) for s, n in pattern)
    return low, sum(max(0, s * (n - 1)) for s, n in pattern)


def revisits(pattern: Iterable[tuple[int, int]]) -> bool:
    """Tell whether a pattern visits an element twice.

    Two visits of one element differ along some axes. An axis that cannot be among
    them is left out of the question. Of what is left, which is seldom anything, two
    axes are compared, and more are counted.
    """
    axes = sorted((abs(step), num) for step, num in pattern if num > 1)
    if axes and axes[0][0] == 0:
        return True
    while axes:
        apart = (i for i in reversed(range(len(axes))) if _stands_apart(axes, i))
        i = next(apart, None)
        if i is None:
            pairs = itertools.combinations(axes, 2)
            return any(_meet(*p) for p in pairs) or _meet_when_counted(axes)
        del axes[i]
    return False


def _stands_apart(axes: list[tuple[int, int]], i: int) -> bool:
    """Tell whether no way along the other axes makes up for a way along axis ``i``.

    Either its step is longer than all of theirs together, or they move by multiples
    of a number that axis ``i``, short as it is, never reaches.
    """
    (step, num), others = axes[i], axes[:i] + axes[i + 1 :]
    if step > extent(others)[1]:
        return True
    common = math.gcd(*(s for s, _ in others))
    return num <= common // math.gcd(common, step)


def _meet(a: tuple[int, int], b: tuple[int, int]) -> bool:
    """Tell whether two axes alone lead to one element: their common multiple."""
    common = math.gcd(a[0], b[0])
    return a[1] > b[0] // common and b[1] > a[0] // common


def _meet_when_counted(axes: list[tuple[int, int]]) -> bool:
    """Mark every element visited; fewer marks than visits tell of a second one."""
    unit = math.gcd(*(s for s, _ in axes))
    axes = [(s // unit, n) for s, n in axes]
    visits, room = math.prod(n for _, n in axes), extent(axes)[1] + 1
    if visits > room:
        return True
    places = np.zeros(1, np.int64)
    for step, num in axes:
        places = np.add.outer(places, step * np.arange(num)).reshape(-1)
    seen = np.zeros(room, bool)
    seen[places] = True
    return np.count_nonzero(seen) < visits


class Gather:
    """A source whose rows are chosen at run time by indices in SBUF."""

    __slots__ = ("base", "indirect_dim", "offset", "pattern", "scalar", "vector")

    def __init__(
        self,
        base: "Tile",
        pattern: tuple[tuple[int, int], ...],
        offset: int,
        vector: "Tile | None",
        scalar: "Tile | int | None",
        indirect_dim: int,
    ):
        self.base = base
        self.pattern = pattern
        self.offset = offset
        self.vector = vector
        self.scalar = scalar
        self.indirect_dim = indirect_dim

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows, then the sizes read in each."""
        return tuple(num for _, num in self.pattern)

    @property
    def dtype(self) -> np.dtype:
        """Element type."""
        return self.base.dtype

    @property
    def memory(self) -> str:
        """Where the tensor lies."""
        return self.base.memory
