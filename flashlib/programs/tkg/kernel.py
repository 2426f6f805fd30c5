"""Run the decode kernel: batch tiles, slot tiles, five steps (chapters 20, 21, 22)."""

from flashlib.machine.tile import Tile
from flashlib.programs.blocks import PARTITIONS
from flashlib.programs.masks.build import Positions, load_positions
from flashlib.programs.tkg.maximum import step2_max
from flashlib.programs.tkg.output import finish, join_batches, step5_values
from flashlib.programs.tkg.pages import load_block_index
from flashlib.programs.tkg.rotation import load_and_rotate, load_queries
from flashlib.programs.tkg.run import (
    Core,
    CoreRun,
    Running,
    SlotTile,
    Softmax,
    new_column,
)
from flashlib.programs.tkg.scores import load_mask, step1_scores
from flashlib.programs.tkg.softmax import step3_exp, step4_sum

__all__ = ["run_core"]


def run_core(core: Core, given: tuple[Tile, Tile] | None) -> CoreRun:
    """Compute this core's share of the call.

    ``given`` are the queries and the active keys where they arrive on chip.
    """
    run = _prepared(core, given)
    s, stop = run.s, run.first_batch + run.s.local_batch
    for first in range(run.first_batch, stop, s.batch_tile):
        count = min(s.batch_tile, stop - first)
        with run.m.sbuf.scope():
            _batch_tile(run, first, count)
    if run.config.out_in_sb and s.batch_sharded:
        join_batches(run)
    return run


def _prepared(core: Core, given: tuple[Tile, Tile] | None) -> CoreRun:
    """Load what every tile needs: ones, positions, queries."""
    m, s, config = core.m, core.s, core.config
    with m.step("setup"):
        ones = m.isa.memset(m.sbuf.alloc((PARTITIONS, 1), core.io), 1.0)
        positions = _positions(core) if config.use_pos_id else None
        rotation = load_positions(m, core.hbm.rope_ids) if config.fuse_rope else None
        result = None
        if config.out_in_sb:
            columns = s.batch * s.width
            result = m.sbuf.alloc((s.head_dim, columns), core.hbm.out.dtype)
    queries, k_active = given or load_queries(core)
    if config.fuse_rope:
        k_active = load_and_rotate(core, queries, k_active, rotation)
    return CoreRun(
        **vars(core),
        queries=queries,
        k_active=k_active,
        ones=ones,
        positions=positions,
        result=result,
    )


def _positions(core: Core) -> Positions:
    """Load the ends of all windows, and their starts where there are any."""
    m, hbm = core.m, core.hbm
    end = load_positions(m, hbm.end_ids)
    given = hbm.start_ids is not None
    return Positions(end, load_positions(m, hbm.start_ids) if given else None)


def _batch_tile(run: CoreRun, first: int, count: int) -> None:
    """All tiles of slots for ``count`` batch items, then the end."""
    m, s = run.m, run.s
    columns = count * s.width
    output, running = m.sbuf.alloc((s.head_dim, columns)), None
    if s.tiled:
        running = Running(*(new_column(m, columns) for _ in range(3)))
    soft = Softmax(columns, output, running)
    block_index = load_block_index(run, first, count) if s.paged else None
    for tile in run.slot_tiles(first, count, block_index):
        with m.sbuf.scope():
            _slot_tile(run, tile, soft)
            if tile.last:
                finish(run, tile, soft)


def _slot_tile(run: CoreRun, tile: SlotTile, soft: Softmax) -> None:
    """The five steps for one tile of slots."""
    mask = load_mask(run, tile)
    scores = step1_scores(run, tile, mask)
    wide, maxima = step2_max(run, tile, scores, soft)
    p = step3_exp(run, scores, wide, maxima)
    factor = step4_sum(run, tile, p, maxima, soft)
    step5_values(run, tile, p, mask, factor, soft)
