"""Run the decode kernel: batch tiles, slot tiles, five steps (chapters 20, 21, 22)."""

from flashlib.programs.blocks import PARTITIONS
from flashlib.programs.masks.build import Positions, load_positions
from flashlib.programs.tkg.maximum import step2_max
from flashlib.programs.tkg.output import finish, join_batches, step5_values
from flashlib.programs.tkg.pages import load_block_index
from flashlib.programs.tkg.rotation import load_and_rotate, load_queries
from flashlib.programs.tkg.run import CoreRun, Running, Softmax, Window
from flashlib.programs.tkg.scores import load_mask, step1_scores
from flashlib.programs.tkg.softmax import step3_exp, step4_sum

__all__ = ["run_core"]


def run_core(run: CoreRun) -> None:
    """Compute this core's share of the call."""
    m, s = run.m, run.s
    _prepare(run)
    stop = run.first_batch + s.local_batch
    for first in range(run.first_batch, stop, s.batch_tile):
        count = min(s.batch_tile, stop - first)
        with m.sbuf.scope():
            _batch_tile(run, first, count)
    if run.config.out_in_sb and s.batch_sharded:
        join_batches(run)


def _prepare(run: CoreRun) -> None:
    """Load what every tile needs: queries, ones, positions."""
    m, s = run.m, run.s
    with m.step("setup"):
        run.ones = m.isa.memset(m.sbuf.alloc((PARTITIONS, 1), run.io), 1.0)
        if run.config.use_pos_id:
            end = load_positions(m, run.hbm.end_ids)
            given = run.hbm.start_ids is not None
            start = load_positions(m, run.hbm.start_ids) if given else None
            run.positions = Positions(end, start)
        if run.config.fuse_rope:
            run.rope_positions = load_positions(m, run.hbm.rope_ids)
        if run.config.out_in_sb:
            columns = s.batch * s.width
            run.result = m.sbuf.alloc((s.head_dim, columns), run.hbm.out.dtype)
    if not run.config.qk_in_sb:
        load_queries(run)
    if run.config.fuse_rope:
        load_and_rotate(run)


def _batch_tile(run: CoreRun, first: int, count: int) -> None:
    """All tiles of slots for ``count`` batch items, then the end."""
    m, s = run.m, run.s
    columns = count * s.width
    soft = Softmax(columns, output=m.sbuf.alloc((s.head_dim, columns)))
    if s.tiled:
        soft.running = Running(*(soft.column(m) for _ in range(3)))
    if s.paged:
        run.block_index = load_block_index(run, first, count)
    for win in run.windows(first, count):
        with m.sbuf.scope():
            _slot_tile(run, win, soft)
            if win.last:
                finish(run, first, count, soft)


def _slot_tile(run: CoreRun, win: Window, soft: Softmax) -> None:
    """The five steps for one tile of slots."""
    mask = load_mask(run, win)
    scores = step1_scores(run, win, mask)
    wide = step2_max(run, win, scores, soft)
    p = step3_exp(run, scores, wide, soft)
    step4_sum(run, win, p, soft)
    step5_values(run, win, p, mask, soft)
