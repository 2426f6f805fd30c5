"""Place cache slots on partitions: strided, sequential and paged (chapters 18, 21).

All three layouts are one formula. A run of ``unit`` slots lies along the free axis of
one partition, 128 such runs make a fold, folds follow each other::

    slot(p, f) = first + (f // unit) * 128 * unit + p * unit + f % unit

``unit = n`` is the strided layout (one fold), ``unit = 1`` the sequential one, and
``unit = block_len`` the paged one. Keys, values, masks and the rows of the active
tokens have to agree on it.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from flashlib.machine.machine import Machine
from flashlib.machine.tile import Tile
from flashlib.programs.blocks import PARTITIONS

__all__ = ["Cells", "SlotLayout"]


class Cells(NamedTuple):
    """A rectangle of cells and the rows that belong there, in row-major order."""

    partitions: slice
    free: slice
    rows: slice

    @property
    def shape(self) -> tuple[int, int]:
        """Partitions and free positions of the rectangle."""
        return tuple(c.stop - c.start for c in (self.partitions, self.free))


@dataclass(frozen=True)
class SlotLayout:
    """Where ``128 * n`` slots lie.

    Parameters
    ----------
    n : int
        Free positions per partition.
    unit : int
        Slots that lie back to back in one partition; divides n.
    stride : int, optional
        Slots between neighboring partitions when the tile is cut from a wider
        strided layout; ``unit`` unless given.

    Examples
    --------
    >>> SlotLayout(2, unit=2).slots()[:2]
    array([[0, 1],
           [2, 3]])
    >>> SlotLayout(2, unit=1).slots()[:2]
    array([[  0, 128],
           [  1, 129]])
    """

    n: int
    unit: int
    stride: int | None = None

    @property
    def folds(self) -> int:
        """Runs of ``unit`` slots that each partition holds."""
        return self.n // self.unit

    def slots(self, first: int = 0) -> np.ndarray:
        """Slot numbers held by every cell, ``[128, n]``."""
        p, f = np.arange(PARTITIONS)[:, None], np.arange(self.n)
        step = self.stride or self.unit
        return (
            first + f // self.unit * PARTITIONS * self.unit + p * step + f % self.unit
        )

    def write_slots(self, m: Machine, dst: Tile, first: int = 0) -> Tile:
        """Write the slot numbers into ``dst [128, n]`` by iota, fold by fold."""
        if self.unit == 1 and self.stride is None:
            pattern = [[PARTITIONS, self.n]]
            return m.isa.iota(dst, pattern, offset=first, channel_multiplier=1)
        step = self.stride or self.unit
        for fold in range(self.folds):
            m.isa.iota(
                dst[:, fold * self.unit : (fold + 1) * self.unit],
                [[1, self.unit]],
                offset=first + fold * PARTITIONS * self.unit,
                channel_multiplier=step,
            )
        return dst

    def tail(self, rows: int) -> list[Cells]:
        """Cells of the last ``rows`` slots: a partial run, then whole partitions.

        Examples
        --------
        >>> SlotLayout(8, unit=8).tail(5)[0][:2]
        (slice(127, 128, None), slice(3, 8, None))
        >>> SlotLayout(8, unit=1).tail(5)[0][:2]
        (slice(123, 128, None), slice(7, 8, None))
        """
        whole, rest = divmod(rows, self.unit)
        last = self.n - self.unit
        first = PARTITIONS - whole
        cells = []
        if rest:
            free = slice(self.n - rest, self.n)
            cells.append(Cells(slice(first - 1, first), free, slice(0, rest)))
        if whole:
            free = slice(last, self.n)
            cells.append(Cells(slice(first, PARTITIONS), free, slice(rest, rows)))
        return cells
