"""Hold what one core of a decode run shares between its steps (chapters 20, 22)."""

from dataclasses import dataclass
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

__all__ = [
    "Core",
    "CoreRun",
    "Maxima",
    "Running",
    "SlotTile",
    "Softmax",
    "new_column",
]


@dataclass(frozen=True)
class Core:
    """One core before its first instruction: its machine, its share of the call."""

    m: Machine
    s: TkgSizes
    config: TkgConfig
    hardened: bool
    hbm: HbmArrays
    io: np.dtype
    kv: np.dtype

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

    def slot_tiles(
        self, first: int, count: int, block_index: Tile | None = None
    ) -> list["SlotTile"]:
        """Tiles of slots for ``count`` batch items from ``first`` on."""
        out, offset, tiles = [], 0, self.s.tiles
        for index, size in enumerate(tiles):
            last = index == len(tiles) - 1
            out.append(
                SlotTile(
                    first,
                    count,
                    self.first_slot + offset,
                    offset,
                    size,
                    self.s.layout(size),
                    index == 0,
                    last,
                    last and self.last_share,
                    block_index,
                )
            )
            offset += size
        return out


@dataclass(frozen=True)
class CoreRun(Core):
    """One core under way, with what lies on its chip throughout.

    ``queries`` is ``[head_dim, batch * n_heads * seq]``, ``k_active [head_dim, batch *
    seq]``. ``positions`` are there with use_pos_id, and ``result`` with out_in_sb.
    """

    queries: Tile
    k_active: Tile
    ones: Tile
    positions: Positions | None
    result: Tile | None


class SlotTile(NamedTuple):
    """One tile of slots for some batch items.

    ``slot`` counts in the cache, ``offset`` in the share of the core. ``active``
    says that the last rows belong to the active tokens. ``block_index`` is the page
    table of the batch items, None for a flat cache.
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
    block_index: Tile | None

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


@dataclass(frozen=True)
class Maxima:
    """What step 2 finds in one tile of slots.

    ``peaks`` is ``[height, entries, pieces]``: the local value first, then the one of
    the other core, then the sink, as far as they take part.
    """

    peaks: Tile
    sink_entry: int | None
    negated: bool


@dataclass(frozen=True)
class Softmax:
    """State of a batch tile, in columns: column c on partition c % 128.

    ``output`` and, with several tiles of slots, ``running`` last as long as the batch
    tile.
    """

    columns: int
    output: Tile
    running: Running | None

    @property
    def parts(self) -> list[slice]:
        """Columns of every piece, at most 128."""
        return pieces(self.columns)

    def each(self) -> list[tuple[slice, slice]]:
        """Partitions and column of every piece."""
        return [
            (slice(0, part.stop - part.start), slice(i, i + 1))
            for i, part in enumerate(self.parts)
        ]


def new_column(m: Machine, columns: int, entries: int | None = None) -> Tile:
    """Allocate ``[height, pieces]``, or ``[height, entries, pieces]``.

    The height is what the columns of one piece take, at most 128 partitions. Cells
    that no column uses are filled once.
    """
    shape = (min(columns, PARTITIONS), len(pieces(columns)))
    if entries is not None:
        shape = (shape[0], entries, shape[1])
    column = m.sbuf.alloc(shape)
    if columns > PARTITIONS and columns % PARTITIONS:
        with m.step("setup"):
            m.isa.memset(column, 0.0)
    return column
