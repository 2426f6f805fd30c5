"""Say when two cores and a sink meet, and swap a tile between cores (chapter 22).

Cores that share the slots of a cache tell each other a maximum, a sum and an output.
With one tile each they meet in it. With several they go ahead on their own and meet
once, after the last tile.
"""

from flashlib.machine.tile import Tile
from flashlib.programs.tkg.run import CoreRun, SlotTile

__all__ = ["exchange", "synchronized", "takes_sink"]


def synchronized(run: CoreRun) -> bool:
    """Whether cores and sink meet in every tile, not only after the last one."""
    return not (run.s.tiled and run.s.slots_sharded)


def takes_sink(run: CoreRun, tile: SlotTile) -> bool:
    """The sink takes part once: in the first tile, or at the end when deferred."""
    once = tile.first if synchronized(run) else tile.last
    return run.hbm.sink is not None and once


def exchange(run: CoreRun, dst: Tile, src: Tile) -> Tile:
    """Swap a tile with the other core."""
    other = 1 - run.core
    return run.m.isa.sendrecv(dst, src, send_to=other, recv_from=other, pipe_id=0)
