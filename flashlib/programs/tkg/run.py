"""Hold what one core of a decode run shares between its steps (chapters 20, 22)."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from flashlib.machine.machine import Machine
from flashlib.machine.tile import Tile
from flashlib.programs.blocks import LANES, pieces
from flashlib.programs.masks.build import Positions
from flashlib.programs.slot_layout import SlotLayout
from flashlib.programs.tkg.config import TkgConfig
from flashlib.programs.tkg.sizes import TkgSizes


@dataclass
class CoreRun:
    """One core under way: its machine, its share, what lies on chip throughout.

    ``hbm`` holds the arrays of the call by name; ``queries`` is
    ``[head_dim, batch * n_heads * seq]`` and ``k_active [head_dim, batch * seq]``.
    """

    m: Machine
    s: TkgSizes
    config: TkgConfig
    hardened: bool
    hbm: dict[str, Tile]
    io: np.dtype
    kv: np.dtype
    queries: Tile | None = None
    k_active: Tile | None = None
    ones: Tile | None = None
    positions: Positions | None = None
    result: Tile | None = None

    @property
    def core(self) -> int:
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
        return self.layout.n

    @property
    def slots(self) -> slice:
        return slice(self.slot, self.slot + self.size)


@dataclass
class Softmax:
    """Running state of a batch tile, in columns: column c on partition c % 128.

    ``peaks`` and ``sums`` are ``[height, entries, pieces]``: the local value first,
    then the one of the other core, then the sink, as far as they take part.
    """

    columns: int
    negated: bool = False
    peaks: Tile | None = None
    sums: Tile | None = None
    sink_entry: int | None = None
    peak: Tile | None = None
    total: Tile | None = None
    correction: Tile | None = None
    output: Tile | None = None
    factor: Tile | None = None
    parts: list[slice] = field(init=False)

    def __post_init__(self):
        self.parts = pieces(self.columns)

    @property
    def height(self) -> int:
        return min(self.columns, LANES)

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
        if self.columns > LANES and self.columns % LANES:
            with m.step("setup"):
                m.isa.memset(tile, 0.0)
        return tile
