"""Exponentiate, sum by products with ones, take reciprocals (chapters 17, 18, 22).

Steps 3 and 4 of five.
"""

import numpy as np

from flashlib.machine.machine import Machine
from flashlib.machine.tile import Tile
from flashlib.programs.blocks import (
    PARTITIONS,
    QUADRANT,
    column_to_row,
    sum_ones_moving,
)
from flashlib.programs.tkg.cores import exchange, synchronized
from flashlib.programs.tkg.run import (
    CoreRun,
    Maxima,
    Running,
    SlotTile,
    Softmax,
    new_column,
)

__all__ = [
    "FLOAT32_TINY",
    "correct_and_add",
    "reciprocals",
    "spread",
    "step3_exp",
    "step4_sum",
    "update_sum",
]

FLOAT32_TINY = float(np.finfo(np.float32).tiny)


def step3_exp(run: CoreRun, scores: Tile, wide: Tile, maxima: Maxima) -> Tile:
    """Return exp(scores - max) in the type of q, ``[128, n, columns]``."""
    m = run.m
    _, n, *_ = scores.shape
    scores = scores.reshape(PARTITIONS, n, wide.shape[1])
    op = "add" if maxima.negated else "subtract"
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


def step4_sum(
    run: CoreRun, tile: SlotTile, p: Tile, maxima: Maxima, soft: Softmax
) -> Tile | None:
    """Sum p over the slots of the tile; return 1 / sum, ``[128, columns]``.

    With several tiles it goes into the running sum instead, and nothing is returned.
    """
    m = run.m
    with m.step("sum"):
        entries = maxima.peaks.shape[1]
        sums = new_column(m, soft.columns, entries)
        for part, (rows, column) in zip(soft.parts, soft.each(), strict=True):
            own = sums[rows, 0, column]
            sum_ones_moving(m, p[:, :, part], out=own, ones=run.ones)
        if run.s.slots_sharded and not run.s.tiled:
            exchange(run, sums[:, 1], sums[:, 0])
        if maxima.sink_entry is not None and synchronized(run):
            _add_sink(run, sums, maxima, soft)
        if entries > 1 and synchronized(run):
            for rows, column in soft.each():
                entries_last = sums[rows, :, column].permute((0, 2, 1))
                m.isa.tensor_reduce(sums[rows, 0, column], "add", entries_last, 2)
        if run.s.tiled:
            update_sum(run, tile, sums[:, 0], maxima, soft)
            return None
    return reciprocals(run, sums[:, 0], soft)


def _add_sink(run: CoreRun, sums: Tile, maxima: Maxima, soft: Softmax) -> None:
    """Enter exp(sink - max) as one more summand; the maximum is negated here."""
    m, entry = run.m, maxima.sink_entry
    peaks = soft.running.peak if run.s.tiled else maxima.peaks[:, 0]
    for rows, column in soft.each():
        sink = maxima.peaks[rows, entry, column]
        peak = peaks[rows, column]
        m.isa.tensor_scalar(sink, sink, "add", peak.reshape(rows.stop, 1))
        m.isa.activation(sums[rows, entry, column], "exp", sink)


def update_sum(
    run: CoreRun, tile: SlotTile, fresh: Tile, maxima: Maxima, soft: Softmax
) -> None:
    """Start the running sum or carry it on; after the last tile the cores meet."""
    if tile.first:
        run.m.isa.tensor_copy(soft.running.total, fresh)
        return
    correct_and_add(run.m, soft.running, fresh)
    if tile.last and not synchronized(run):
        _join_sums(run, maxima, soft)


def correct_and_add(m: Machine, running: Running, fresh: Tile) -> None:
    """Measure the running sum by the new maximum, then add the one of this tile."""
    total = running.total
    m.isa.tensor_tensor(total, total, running.correction, "multiply")
    m.isa.tensor_tensor(total, total, fresh, "add")


def _join_sums(run: CoreRun, maxima: Maxima, soft: Softmax) -> None:
    """Add the sum of the other core, and the sink on both."""
    m, total = run.m, soft.running.total
    with m.sbuf.scope():
        remote = m.sbuf.alloc(total.shape)
        exchange(run, remote, total)
        m.isa.tensor_tensor(total, total, remote, "add")
    if maxima.sink_entry is None:
        return
    sinks, peak = maxima.peaks[:, maxima.sink_entry], soft.running.peak
    for rows, column in soft.each():
        sink = sinks[rows, column]
        m.isa.activation(sink, "exp", peak[rows, column], bias=sink, scale=-1.0)
    m.isa.tensor_tensor(total, total, sinks, "add")


def reciprocals(run: CoreRun, sums: Tile, soft: Softmax) -> Tile:
    """Return 1 / sums on all partitions, ``[128, columns]``."""
    m = run.m
    with m.step("recip"):
        if run.hardened:
            # a row without keys: 0 times a large number, not 0 times infinity
            m.isa.tensor_scalar(sums, sums, "maximum", FLOAT32_TINY)
        m.isa.reciprocal(sums, sums)
        return spread(run, sums, soft, PARTITIONS)


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
