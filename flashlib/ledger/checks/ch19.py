"""Check what is claimed about windows that wrap (chapter 19)."""

import numpy as np

from flashlib.ledger.rows import Finding
from flashlib.machine import Machine
from flashlib.machine.trace import Trace
from flashlib.programs import attention_cte
from flashlib.programs.blocks import PARTITIONS
from flashlib.programs.masks.build import write_band

RING = 11  # 121 pairs of start and end fit on 128 partitions


def _bands(n: int) -> tuple[np.ndarray, list[tuple[int, int]], Trace]:
    """Run the band for every start and end of a ring at once."""
    pairs = [(start, end) for start in range(n) for end in range(n)]
    lanes = np.zeros((PARTITIONS, 2), np.float32)
    lanes[: len(pairs)] = pairs
    m = Machine()
    slots = m.sbuf.put(np.tile(np.arange(n, dtype=np.float32), (PARTITIONS, 1)))
    start, end = m.sbuf.put(lanes[:, :1]), m.sbuf.put(lanes[:, 1:])
    kept = write_band(m, slots, start, end, end).numpy()
    return kept[: len(pairs)], pairs, m.trace


def band_without_branches() -> Finding:
    """Hold every band of every small ring against a walk around the ring."""
    wrong = tried = 0
    for n in range(1, RING + 1):
        kept, pairs, trace = _bands(n)
        for row, (start, end) in zip(kept, pairs, strict=True):
            walk = {(start + step) % n for step in range((end - start) % n)}
            wrong += set(np.flatnonzero(row).tolist()) != walk
            tried += 1
    counts = trace.histogram()
    alu = {"tensor_scalar", "tensor_tensor"}
    holds = wrong == 0 and counts.keys() <= alu
    return Finding.of(
        holds,
        f"{tried} bands on rings of 1 to {RING} slots, {wrong} of them wrong, each by "
        f"the same {sum(counts.values())} vector instructions whatever the data",
    )


def two_forms() -> Finding:
    """Compare the open band of decode with range_select, straight and wrapped."""
    n = RING
    kept, pairs, opened = _bands(n)
    m = Machine()
    lanes = np.zeros((PARTITIONS, 2), np.float32)
    lanes[: len(pairs)] = pairs
    lanes[:, 1] -= 1
    low, high = m.sbuf.put(lanes[:, :1]), m.sbuf.put(lanes[:, 1:])
    ones = m.sbuf.put(np.ones((PARTITIONS, n), np.float32))
    out = m.sbuf.alloc((PARTITIONS, n))
    m.isa.range_select(out, ones, "greater_equal", "less_equal", low, high)
    found = out.numpy()[: len(pairs)] == 1
    wraps = np.array([start > end for start, end in pairs])
    same = (found == (kept == 1)).all(1)
    shape = np.zeros((1, 256, 8), np.float32)
    ops = attention_cte(shape, shape, shape, scale=1.0, window=64).traces[0].histogram()
    return Finding.of(
        bool(same[~wraps].all()) and ops.get("range_select", 0) > 0,
        f"1 range_select against {sum(opened.histogram().values())} vector "
        f"instructions: equal for all {(~wraps).sum()} bands that do not wrap, and for "
        f"{same[wraps].sum()} of the {wraps.sum()} that do",
    )


def every_window() -> Finding:
    """Ask for a window of each length and count the cached slots."""
    n, missed = RING, []
    kept, pairs, _ = _bands(n)
    rows = dict(zip(pairs, kept, strict=True))
    for cached in range(n + 1):
        counts = {int(rows[(pos - cached) % n, pos].sum()) for pos in range(n)}
        if counts != {cached}:
            missed.append(cached)
    return Finding.of(
        not missed,
        f"of the windows that keep 0 to {n} cached slots of a ring of {n}, those of "
        f"{missed} cannot be said: start and end are equal, and the band is empty",
    )
