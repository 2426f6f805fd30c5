"""Run a program on the machine and remember the operands of each call (chapter 15).

A trace keeps shapes and addresses, not values. The watch stands between a program
and the instruction set, and copies values out before and after each call.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from flashlib.machine.machine import Machine
from flashlib.machine.storage import Storage
from flashlib.machine.tile import Tile
from flashlib.machine.trace import Record


@dataclass(frozen=True)
class Held:
    """A tensor that is alive on chip: where it lies and how much it takes."""

    number: int
    memory: str
    offset: int
    row_bytes: int
    bank: int | None


@dataclass(frozen=True)
class Moment:
    """One instruction with its values.

    Attributes
    ----------
    record : Record
    reads, writes : dict of str to ndarray
        Inputs as they were before, outputs as they are after.
    held : tuple of Held
        Tensors that have been touched so far and are alive, in order of address.
    used : int
        Bytes of SBUF per partition up to the top of its stack.
    """

    record: Record
    reads: dict[str, np.ndarray]
    writes: dict[str, np.ndarray]
    held: tuple[Held, ...]
    used: int


@dataclass
class Watch:
    """Stand in for ``machine.isa`` and keep one `Moment` for each instruction.

    Examples
    --------
    >>> m = Machine()
    >>> m.isa = watch = Watch(m)
    >>> _ = m.isa.memset(m.sbuf.alloc((2, 3)), 7.0)
    >>> watch.moments[0].writes["dst"].tolist()
    [[7.0, 7.0, 7.0], [7.0, 7.0, 7.0]]
    """

    machine: Machine
    moments: list[Moment] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._isa = self.machine.isa
        self._seen: dict[int, Storage] = {}

    def __getattr__(self, name: str) -> Callable:
        call = getattr(self._isa, name)
        signature = inspect.signature(call)

        def watched(*args: object, **kwargs: object) -> object:
            given = signature.bind(*args, **kwargs).arguments
            tiles = {k: x for k, x in given.items() if isinstance(x, Tile)}
            before = {k: tile.numpy() for k, tile in tiles.items()}
            result = call(*args, **kwargs)
            self._remember(tiles, before)
            return result

        return watched

    def _remember(self, tiles: dict[str, Tile], before: dict[str, np.ndarray]) -> None:
        record = self.machine.trace.records[-1]
        for tile in tiles.values():
            self._seen[tile.storage.id] = tile.storage
        chip = [s for s in self._seen.values() if s.live and s.memory != "hbm"]
        chip.sort(key=lambda s: s.offset)
        self.moments.append(
            Moment(
                record,
                {o.name: before[o.name] for o in record.reads},
                {o.name: tiles[o.name].numpy() for o in record.writes},
                tuple(
                    Held(s.id, s.memory, s.offset, s.row_bytes, s.bank) for s in chip
                ),
                self.machine.sbuf.used,
            )
        )
