"""Exponentiate, sum by products with ones, take reciprocals (chapters 17, 18, 22).

Steps 3 and 4 of five.
"""

import numpy as np

from flashlib.machine.machine import Machine
from flashlib.machine.tile import Tile
from flashlib.programs.blocks import LANES, QUADRANT, column_to_row
from flashlib.programs.tkg.maximum import exchange, synchronized
from flashlib.programs.tkg.run import CoreRun, Softmax, Window

FLOAT32_TINY = float(np.finfo(np.float32).tiny)


def step3_exp(run: CoreRun, scores: Tile, wide: Tile, soft: Softmax) -> Tile:
    """Return exp(scores - max) in the type of q, ``[128, n, columns]``."""
    m = run.m
    _, n, *_ = scores.shape
    scores = scores.reshape(LANES, n, soft.columns)
    op = "add" if soft.negated else "subtract"
    with m.step("exp"):
        p = m.sbuf.alloc(scores.shape, run.io)
        if m.spec.generation >= 4:
            for t in range(n):
                m.isa.tensor_tensor(scores[:, t], scores[:, t], wide, op)
                m.isa.activation(p[:, t], "exp", scores[:, t])
            return p
        peaks = wide[:, None, :].broadcast_to(scores.shape)
        m.isa.tensor_tensor(scores, scores, peaks, op)
        return m.isa.activation(p, "exp", scores)


def step4_sum(run: CoreRun, win: Window, p: Tile, soft: Softmax) -> None:
    """Sum p over the slots of the tile; update the running sum or invert."""
    m = run.m
    with m.step("sum"):
        entries = soft.peaks.shape[1]
        soft.sums = soft.column(m, entries)
        for part, (rows, column) in zip(soft.parts, soft.each(), strict=True):
            _sum_blocks(run, p[:, :, part], soft.sums[rows, 0, column])
        if run.s.slots_sharded and not run.s.tiled:
            exchange(run, soft.sums[:, 1], soft.sums[:, 0])
        if soft.sink_entry is not None and synchronized(run):
            _add_sink(run, soft)
        if entries > 1 and synchronized(run):
            for rows, column in soft.each():
                entries_last = soft.sums[rows, :, column].permute((0, 2, 1))
                m.isa.tensor_reduce(soft.sums[rows, 0, column], "add", entries_last, 2)
        if run.s.tiled:
            update_running(run, win, soft)
    if not run.s.tiled:
        soft.factor = reciprocals(run, soft.sums[:, 0], soft)


def _sum_blocks(run: CoreRun, p: Tile, dst: Tile) -> None:
    """Sum one piece of columns: a product with ones per block, then a reduction."""
    m = run.m
    _, n, columns = p.shape
    with m.psum.scope():
        blocks = m.psum.alloc((columns, n))
        for t in range(n):
            m.isa.nc_matmul(blocks[:, t : t + 1], stationary=p[:, t], moving=run.ones)
        m.isa.tensor_reduce(dst, "add", blocks, axis=1)


def _add_sink(run: CoreRun, soft: Softmax) -> None:
    """Enter exp(sink - max) as one more summand; the maximum is negated here."""
    m, entry = run.m, soft.sink_entry
    for rows, column in soft.each():
        sink = soft.peaks[rows, entry, column]
        peak = soft.peak[rows, column] if run.s.tiled else soft.peaks[rows, 0, column]
        m.isa.tensor_scalar(sink, sink, "add", peak.reshape(rows.stop, 1))
        m.isa.activation(soft.sums[rows, entry, column], "exp", sink)


def update_running(run: CoreRun, win: Window, soft: Softmax) -> None:
    """Start the running sum or carry it on; after the last tile the cores meet."""
    if win.first:
        run.m.isa.tensor_copy(soft.total, soft.sums[:, 0])
        return
    correct_and_add(run.m, soft)
    if win.last and not synchronized(run):
        _meet_at_the_end(run, soft)


def correct_and_add(m: Machine, soft: Softmax) -> None:
    """Measure the running sum by the new maximum, then add the one of this tile."""
    m.isa.tensor_tensor(soft.total, soft.total, soft.correction, "multiply")
    m.isa.tensor_tensor(soft.total, soft.total, soft.sums[:, 0], "add")


def _meet_at_the_end(run: CoreRun, soft: Softmax) -> None:
    """Add the sum of the other core, and the sink on both."""
    m = run.m
    with m.sbuf.scope():
        remote = m.sbuf.alloc(soft.total.shape)
        exchange(run, remote, soft.total)
        m.isa.tensor_tensor(soft.total, soft.total, remote, "add")
    if soft.sink_entry is None:
        return
    for rows, column in soft.each():
        sink = soft.peaks[rows, soft.sink_entry, column]
        m.isa.activation(sink, "exp", soft.peak[rows, column], bias=sink, scale=-1.0)
    m.isa.tensor_tensor(soft.total, soft.total, soft.peaks[:, soft.sink_entry], "add")


def reciprocals(run: CoreRun, sums: Tile, soft: Softmax) -> Tile:
    """Return 1 / sums on all partitions, ``[128, columns]``."""
    m = run.m
    with m.step("recip"):
        if run.hardened:
            # a row without keys: 0 times a large number, not 0 times infinity
            m.isa.tensor_scalar(sums, sums, "maximum", FLOAT32_TINY)
        m.isa.reciprocal(sums, sums)
        return spread(run, sums, soft, LANES)


def spread(run: CoreRun, columns: Tile, soft: Softmax, height: int) -> Tile:
    """Lay ``[height, pieces]`` out as a row and copy it to ``height`` partitions."""
    m = run.m
    out = m.sbuf.alloc((height, soft.columns))
    with m.sbuf.scope():
        row = m.sbuf.alloc((1, soft.columns))
        for part, (rows, column) in zip(soft.parts, soft.each(), strict=True):
            column_to_row(m, columns[rows, column], row[:, part])
        for start in range(0, height, QUADRANT):
            dst = out[start : min(start + QUADRANT, height)]
            m.isa.nc_stream_shuffle(dst, row, [0] * QUADRANT)
    return out
