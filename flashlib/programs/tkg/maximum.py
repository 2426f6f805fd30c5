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
from flashlib.programs.tkg.run import CoreRun, Maxima, SlotTile, Softmax, new_column

__all__ = ["sinks_of_columns", "step2_max", "update_maximum"]


def step2_max(
    run: CoreRun, tile: SlotTile, scores: Tile, soft: Softmax
) -> tuple[Tile, Maxima]:
    """Return the maxima on all partitions, ``[128, columns]``, and in columns."""
    m = run.m
    with m.step("max"):
        maxima = _local_and_others(run, tile, scores, soft)
        if run.hardened:
            _keep_finite(run, maxima)
        if run.s.tiled:
            update_maximum(run, tile, maxima, soft)
        source = soft.running.peak if run.s.tiled else maxima.peaks[:, 0]
        wide = m.sbuf.alloc((PARTITIONS, soft.columns))
        for part, (rows, column) in zip(soft.parts, soft.each(), strict=True):
            with m.sbuf.scope():
                # the clamp keeps -inf - (-inf) away, on this copy only
                clamped = m.sbuf.alloc((rows.stop, 1))
                m.isa.tensor_scalar(
                    clamped, source[rows, column], "maximum", FLOAT32_MIN
                )
                broadcast_column(m, clamped, out=wide[:, part])
    return wide, maxima


def _local_and_others(
    run: CoreRun, tile: SlotTile, scores: Tile, soft: Softmax
) -> Maxima:
    """Collect the entries of the maximum and reduce them to the first one."""
    m, columns = run.m, soft.columns
    meets = run.s.slots_sharded and not run.s.tiled
    sink = takes_sink(run, tile)
    entries = 1 + meets + sink
    peaks = new_column(m, columns, entries)
    sink_entry = entries - 1 if sink else None
    with m.sbuf.scope():
        lanes = m.sbuf.alloc((PARTITIONS, columns))
        by_column = scores.reshape(PARTITIONS, tile.n, columns).permute((0, 2, 1))
        m.isa.tensor_reduce(lanes, "maximum", by_column, axis=2)
        for part, (rows, column) in zip(soft.parts, soft.each(), strict=True):
            top = peaks[rows, 0, column]
            max_over_partitions(m, lanes[:, part], out=top)
    if meets:
        exchange(run, peaks[:, 1], peaks[:, 0])
    if sink:
        _load_sink(run, tile, soft, peaks[:, sink_entry])
    return Maxima(peaks, sink_entry, _reduce_entries(run, peaks, soft))


def _reduce_entries(run: CoreRun, peaks: Tile, soft: Softmax) -> bool:
    """Reduce the entries to the first one; tell whether it is negated."""
    m = run.m
    if not synchronized(run):
        return False
    if peaks.shape[1] > 1:
        for rows, column in soft.each():
            candidates = peaks[rows, :, column].permute((0, 2, 1))
            m.isa.tensor_reduce(
                peaks[rows, 0, column], "maximum", candidates, 2, negate=True
            )
        return True
    if run.hbm.sink is not None and run.s.tiled:
        # later tiles have no sink but must carry the sign of the first
        m.isa.tensor_scalar(peaks, peaks, "multiply", -1.0)
        return True
    return False


def _load_sink(run: CoreRun, tile: SlotTile, soft: Softmax, dst: Tile) -> None:
    """Lay the sink of each head beside its columns."""
    m = run.m
    with m.step("sink"), m.sbuf.scope():
        row = m.sbuf.alloc((1, soft.columns))
        m.isa.dma_copy(row, sinks_of_columns(run, tile))
        for part, (rows, column) in zip(soft.parts, soft.each(), strict=True):
            own = row[:, part]
            for start in range(0, rows.stop, QUADRANT):
                stop = min(start + QUADRANT, rows.stop)
                cells = dst[start:stop, column]
                m.isa.nc_transpose(cells, own[:, start:stop], engine="vector")


def sinks_of_columns(run: CoreRun, tile: SlotTile) -> Tile:
    """Repeat each head's sink for its tokens, ``[batch, n_heads, seq]``."""
    sink = run.hbm.sink.reshape(1, run.s.n_heads, 1)
    return sink.broadcast_to((tile.count, run.s.n_heads, run.s.seq))


def _keep_finite(run: CoreRun, maxima: Maxima) -> None:
    """Clamp the maximum itself, so that no correction sees -inf - (-inf)."""
    op, bound = "maximum", FLOAT32_MIN
    if maxima.negated:
        op, bound = "minimum", -FLOAT32_MIN
    top = maxima.peaks[:, 0]
    run.m.isa.tensor_scalar(top, top, op, bound)


def update_maximum(run: CoreRun, tile: SlotTile, maxima: Maxima, soft: Softmax) -> None:
    """Fold the maximum of this tile into the running one; find the correction."""
    m, top = run.m, maxima.peaks[:, 0]
    peak, correction = soft.running.peak, soft.running.correction
    if tile.first:
        m.isa.tensor_copy(peak, top)
        m.isa.memset(correction, 1.0)
        return
    with m.sbuf.scope():
        before = m.sbuf.alloc(peak.shape)
        m.isa.tensor_copy(before, peak)
        m.isa.tensor_tensor(peak, peak, top, "minimum" if maxima.negated else "maximum")
        if tile.last and not synchronized(run):
            _join_maxima(run, peak, maxima)
        high, low = (before, peak) if maxima.negated else (peak, before)
        for rows, column in soft.each():
            m.isa.activation(
                correction[rows, column],
                "exp",
                high[rows, column],
                bias=low[rows, column],
                scale=-1.0,
            )


def _join_maxima(run: CoreRun, peak: Tile, maxima: Maxima) -> None:
    """Join the running maximum with the sink and with the other core."""
    m = run.m
    if maxima.sink_entry is not None:
        sink = maxima.peaks[:, maxima.sink_entry]
        m.isa.tensor_tensor(peak, peak, sink, "maximum")
    remote = m.sbuf.alloc(peak.shape)
    exchange(run, remote, peak)
    m.isa.tensor_tensor(peak, peak, remote, "maximum")
