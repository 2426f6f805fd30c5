"""Find the maximum of every column, over tiles, cores and the sink (chapters 18, 22).

Step 2 of five. As soon as a second value takes part (the other core's maximum or the
sink) the reduction of the two negates for free, and from then on the maximum is kept
negated: a running maximum is then a minimum.
"""

from flashlib.machine.dtypes import FLOAT32_MIN
from flashlib.machine.tile import Tile
from flashlib.programs.blocks import (
    PARTITIONS,
    QUADRANT,
    broadcast_column,
    max_over_partitions,
)
from flashlib.programs.tkg.cores import exchange, synchronized, takes_sink
from flashlib.programs.tkg.run import CoreRun, Softmax, Window

__all__ = ["sinks_of_columns", "step2_max", "update_maximum"]


def step2_max(run: CoreRun, win: Window, scores: Tile, soft: Softmax) -> Tile:
    """Return the maxima on all partitions, ``[128, columns]``."""
    m = run.m
    with m.step("max"):
        _local_and_others(run, win, scores, soft)
        if run.hardened:
            _keep_finite(run, soft)
        if run.s.tiled:
            update_maximum(run, win, soft)
        source = soft.running.peak if run.s.tiled else soft.peaks[:, 0]
        wide = m.sbuf.alloc((PARTITIONS, soft.columns))
        for part, (rows, column) in zip(soft.parts, soft.each(), strict=True):
            with m.sbuf.scope():
                # the clamp keeps -inf - (-inf) away, on this copy only
                clamped = m.sbuf.alloc((rows.stop, 1))
                m.isa.tensor_scalar(
                    clamped, source[rows, column], "maximum", FLOAT32_MIN
                )
                broadcast_column(m, clamped, out=wide[:, part])
    return wide


def _local_and_others(run: CoreRun, win: Window, scores: Tile, soft: Softmax) -> None:
    """Collect the entries of the maximum and reduce them to the first one."""
    m, columns = run.m, soft.columns
    meets = run.s.slots_sharded and not run.s.tiled
    sink = takes_sink(run, win)
    entries = 1 + meets + sink
    soft.peaks = soft.column(m, entries)
    soft.sink_entry = entries - 1 if sink else None
    with m.sbuf.scope():
        lanes = m.sbuf.alloc((PARTITIONS, columns))
        by_column = scores.reshape(PARTITIONS, win.n, columns).permute((0, 2, 1))
        m.isa.tensor_reduce(lanes, "maximum", by_column, axis=2)
        for part, (rows, column) in zip(soft.parts, soft.each(), strict=True):
            top = soft.peaks[rows, 0, column]
            max_over_partitions(m, lanes[:, part], out=top)
    if meets:
        exchange(run, soft.peaks[:, 1], soft.peaks[:, 0])
    if sink:
        _load_sink(run, win, soft)
    soft.negated = False
    if entries > 1 and synchronized(run):
        soft.negated = True
        for rows, column in soft.each():
            candidates = soft.peaks[rows, :, column].permute((0, 2, 1))
            m.isa.tensor_reduce(
                soft.peaks[rows, 0, column], "maximum", candidates, 2, negate=True
            )
    elif run.hbm.sink is not None and run.s.tiled and synchronized(run):
        # later tiles have no sink but must carry the sign of the first
        soft.negated = True
        m.isa.tensor_scalar(soft.peaks, soft.peaks, "multiply", -1.0)


def _load_sink(run: CoreRun, win: Window, soft: Softmax) -> None:
    """Lay the sink of each head beside its columns."""
    m = run.m
    with m.step("sink"), m.sbuf.scope():
        row = m.sbuf.alloc((1, soft.columns))
        m.isa.dma_copy(row, sinks_of_columns(run, win))
        for part, (rows, column) in zip(soft.parts, soft.each(), strict=True):
            own = row[:, part]
            for start in range(0, rows.stop, QUADRANT):
                stop = min(start + QUADRANT, rows.stop)
                dst = soft.peaks[start:stop, soft.sink_entry, column]
                m.isa.nc_transpose(dst, own[:, start:stop], engine="vector")


def sinks_of_columns(run: CoreRun, win: Window) -> Tile:
    """Repeat each head's sink for its tokens, ``[batch, n_heads, seq]``."""
    sink = run.hbm.sink.reshape(1, run.s.n_heads, 1)
    return sink.broadcast_to((win.count, run.s.n_heads, run.s.seq))


def _keep_finite(run: CoreRun, soft: Softmax) -> None:
    """Clamp the maximum itself, so that no correction sees -inf - (-inf)."""
    op, bound = ("minimum", -FLOAT32_MIN) if soft.negated else ("maximum", FLOAT32_MIN)
    top = soft.peaks[:, 0]
    run.m.isa.tensor_scalar(top, top, op, bound)


def update_maximum(run: CoreRun, win: Window, soft: Softmax) -> None:
    """Fold the maximum of this tile into the running one; find the correction."""
    m, top = run.m, soft.peaks[:, 0]
    peak, correction = soft.running.peak, soft.running.correction
    if win.first:
        m.isa.tensor_copy(peak, top)
        m.isa.memset(correction, 1.0)
        return
    with m.sbuf.scope():
        before = m.sbuf.alloc(peak.shape)
        m.isa.tensor_copy(before, peak)
        m.isa.tensor_tensor(peak, peak, top, "minimum" if soft.negated else "maximum")
        if win.last and not synchronized(run):
            _join_maxima(run, soft)
        high, low = (before, peak) if soft.negated else (peak, before)
        for rows, column in soft.each():
            m.isa.activation(
                correction[rows, column],
                "exp",
                high[rows, column],
                bias=low[rows, column],
                scale=-1.0,
            )


def _join_maxima(run: CoreRun, soft: Softmax) -> None:
    """Join the running maximum with the sink and with the other core."""
    m, peak = run.m, soft.running.peak
    if soft.sink_entry is not None:
        sink = soft.peaks[:, soft.sink_entry]
        m.isa.tensor_tensor(peak, peak, sink, "maximum")
    remote = m.sbuf.alloc(peak.shape)
    exchange(run, remote, peak)
    m.isa.tensor_tensor(peak, peak, remote, "maximum")
