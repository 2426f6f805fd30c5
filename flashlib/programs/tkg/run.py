"""Hold what one core of a decode run shares between its steps (chapters 20, 22)."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from flashlib.machine.machine import Machine
from flashlib.machine.tile import Tile
from flashlib.programs.blocks import PARTITIONS, pieces
from flashlib.programs.masks.build import Positions
from flashlib.programs.slot_layout import SlotLayout
from flashlib.programs.tkg.arrays import HbmArrays
from flashlib.programs.tkg.config import TkgConfig
from flashlib.programs.tkg.sizes import TkgSizes

__all__ = ["CoreRun", "Running", "Softmax", "Window"]


@dataclass
class CoreRun:
    """One core under way: its machine, its share, what lies on chip throughout.

    ``queries`` is ``[head_dim, batch * n_heads * seq]``, ``k_active [head_dim, batch *
    seq]``, and ``block_index`` the page table of one batch tile.
    """

    m: Machine
    s: TkgSizes
    config: TkgConfig
    hardened: bool
    hbm: HbmArrays
    io: np.dtype
    kv: np.dtype
    queries: Tile | None = None
    k_active: Tile | None = None
    ones: Tile | None = None
    positions: Positions | None = None
    rope_positions: Tile | None = None
    block_index: Tile | None = None
    result: Tile | None = None

    @property
    def core(self) -> int:
        """Number of this core, 0 or 1."""
        return self.m.core

    @property
    def first_batch(self) -> int:
        """First batch item of this core."""
        return self.core * self.s.local_batch if self.s.batch_sharded else 0

    @property
    def first_slot(self) -> int:
        """First slot of this core."""
        return self.core * self.s.local_slots if self.s.slots_sharded else 0

    @property
    def last_share(self) -> bool:
        """Whether the active tokens belong to the slots of this core."""
        return not self.s.slots_sharded or self.core == 1

    def windows(self, first: int, count: int) -> list["Window"]:
        """Tiles of slots for ``count`` batch items from ``first`` on."""
        out, offset, tiles = [], 0, self.s.tiles
        for index, size in enumerate(tiles):
            last = index == len(tiles) - 1
            out.append(
                Window(
                    first,
                    count,
                    self.first_slot + offset,
                    offset,
                    size,
                    self.s.layout(size),
                    index == 0,
                    last,
                    last and self.last_share,
                )
            )
            offset += size
        return out


class Window(NamedTuple):
    """One tile of slots for some batch items.

    ``slot`` counts in the cache, ``offset`` in the share of the core. ``active``
    says that the last rows belong to the active tokens.
    """

    batch: int
    count: int
    slot: int
    offset: int
    size: int
    layout: SlotLayout
    first: bool
    last: bool
    active: bool

    @property
    def n(self) -> int:
        """Blocks of 128 slots."""
        return self.layout.n

    @property
    def slots(self) -> slice:
        """Where the tile lies in the cache."""
        return slice(self.slot, self.slot + self.size)


@dataclass(frozen=True)
class Running:
    """What one tile of slots hands to the next, ``[height, pieces]`` each."""

    peak: Tile
    total: Tile
    correction: Tile


@dataclass
class Softmax:
    """State of a batch tile, in columns: column c on partition c % 128.

    ``output`` and, with several tiles, ``running`` last as long as the batch tile. The
    others belong to one tile of slots; its steps make them. ``peaks`` and ``sums`` are
    ``[height, entries, pieces]``: the local value first, then the one of the other
    core, then the sink, as far as they take part.
    """

    columns: int
    output: Tile
    running: Running | None = None
    negated: bool = False
    peaks: Tile | None = None
    sums: Tile | None = None
    sink_entry: int | None = None
    factor: Tile | None = None
    parts: list[slice] = field(init=False)

    def __post_init__(self):
        self.parts = pieces(self.columns)

    @property
    def height(self) -> int:
        """Partitions that the columns of one piece take."""
        return min(self.columns, PARTITIONS)

    def each(self) -> list[tuple[slice, slice]]:
        """Partitions and column of every piece."""
        return [
            (slice(0, part.stop - part.start), slice(i, i + 1))
            for i, part in enumerate(self.parts)
        ]

    def column(self, m: Machine, entries: int | None = None) -> Tile:
        """Allocate ``[height, pieces]``; cells that no column uses are filled once."""
        shape = (self.height, len(self.parts))
        if entries is not None:
            shape = (self.height, entries, len(self.parts))
        tile = m.sbuf.alloc(shape)
        if self.columns > PARTITIONS and self.columns % PARTITIONS:
            with m.step("setup"):
                m.isa.memset(tile, 0.0)
        return tile
