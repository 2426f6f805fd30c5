"""Wrong kernels for caches, tiles, cores and prefill (chapters 21, 22, 23).

Examples
--------
>>> FAULTS["sink_in_every_tile"].fault
'It lets the sink take part in every tile.'
"""

from flashlib.machine.dtypes import UINT32
from flashlib.machine.machine import Machine
from flashlib.machine.tile import Tile
from flashlib.mutants.machine.cache_checks import CHECKS
from flashlib.mutants.machine.wrong_program import wing
from flashlib.programs.blocks import PARTITIONS
from flashlib.programs.cte.sizes import CteSizes, Keys, Section
from flashlib.programs.slot_layout import SlotLayout
from flashlib.programs.tkg import maximum, pages, softmax, values
from flashlib.programs.tkg.cores import synchronized
from flashlib.programs.tkg.run import CoreRun, Running, SlotTile


def table_as_it_is(m: Machine, pages: Tile, factor: int) -> Tile:
    """It takes page numbers for numbers of blocks and forgets that pages were cut."""
    return pages


def pages_in_line(run: CoreRun, entries: Tile) -> Tile:
    """It takes the pages as they lie in memory and never looks at the table."""
    blocks = entries.shape[0] * run.s.factor
    return run.m.isa.iota(run.m.sbuf.alloc((1, blocks), UINT32), [[1, blocks]])


def values_dealt_out(rows: Tile, layout: SlotLayout) -> Tile:
    """It lays values on the partitions in another order than the keys."""
    folded = rows.reshape(layout.unit, PARTITIONS, layout.folds, rows.shape[1])
    return folded.permute((1, 2, 0, 3))


def sink_in_every_tile(run: CoreRun, tile: SlotTile) -> bool:
    """It lets the sink take part in every tile."""
    return run.hbm.sink is not None and (synchronized(run) or tile.last)


def old_sum_not_corrected(m: Machine, running: Running, fresh: Tile) -> None:
    """It adds the sum of a tile to one that is measured by another maximum."""
    total = running.total
    m.isa.tensor_tensor(total, total, fresh, "add")


def own_maximum_twice(run: CoreRun, dst: Tile, src: Tile) -> Tile:
    """It takes the maximum of its own core for that of the other one."""
    return run.m.isa.tensor_copy(dst, src)


def first_query_decides(
    self: CteSizes, group: int, keys: Keys, section: Section
) -> bool:
    """It computes a run of keys only if the first query of the group may see it."""
    unknown = self.moved and not self.strided_part
    if not self.causal or self.packed or section.has_prior or unknown:
        return True
    low, high = self.positions(group)
    if self.window is None:
        return low >= keys.key
    if high - (self.window - 1) > self.seq_k - 1:
        return True
    return high >= keys.key and low < keys.last + self.window


def last_query_decides(self: CteSizes, group: int, keys: Keys) -> bool:
    """It leaves the mask out if the last query of the group may see the whole run."""
    if keys.prior or self.packed:
        return True
    if not self.causal:
        return False
    if self.window is not None or (self.moved and not self.strided_part):
        return True
    return self.positions(group)[1] < keys.last


#: Every wrong program of this wing by its name.
FAULTS = wing(
    CHECKS,
    (21, pages, "first_blocks", table_as_it_is),
    (21, pages, "resized", pages_in_line),
    (21, values, "in_lanes", values_dealt_out),
    (22, maximum, "takes_sink", sink_in_every_tile),
    (22, softmax, "correct_and_add", old_sum_not_corrected),
    (22, maximum, "exchange", own_maximum_twice),
    (23, CteSizes, "needed", first_query_decides),
    (23, CteSizes, "masked", last_query_decides),
)
