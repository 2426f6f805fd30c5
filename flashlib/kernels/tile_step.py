"""Take a block of lanes past one tile of keys: score, hide, weigh, add (chapter 9)."""

import math
from typing import NamedTuple

import numpy as np

from flashlib.kernels.jit import inner
from flashlib.kernels.lanes import apply_data, hide_edges, is_visible
from flashlib.kernels.microkernel import (
    accumulate_panel,
    lanes_of,
    rows_of,
    score_panel,
)
from flashlib.kernels.panels import round_up
from flashlib.kernels.threads import aligned
from flashlib.kernels.tile_softmax import PIECE, softmax_tile

__all__ = [
    "Scratch",
    "attend_tile",
    "end_row",
    "end_stretch",
    "make_scratch",
]


class Scratch(NamedTuple):
    """What one thread works in; its size does not depend on the sequence.

    ============  ======================================================
    q             ``[n_blocks, head_dim, lanes]``
    s             ``[tile, lanes]``: scores, then weights
    acc           ``[n_blocks, head_dim_v rounded up, lanes]``
    m, l, corr    ``[n_blocks, lanes]``
    lost          likewise: what rounding has taken from `l`
    past          acc, m and l of the stretches that are over
    lo, hi        ``[n_blocks, lanes]``: keys that a lane may see
    rows          ``[lanes]``: addresses of the rows of a block
    idle          a row for the lanes that have none
    ============  ======================================================
    """

    q: np.ndarray
    s: np.ndarray
    acc: np.ndarray
    m: np.ndarray
    l: np.ndarray
    corr: np.ndarray
    lost: np.ndarray
    past: tuple
    lo: np.ndarray
    hi: np.ndarray
    rows: np.ndarray
    idle: np.ndarray


@inner
def make_scratch(q, v, tile, n_blocks, target):
    """Allocate the buffers of one thread."""
    rows, lanes = rows_of(target), lanes_of(q, target)
    n = n_blocks * lanes
    return Scratch(
        aligned(n * q.shape[2], q),
        aligned(tile * lanes, q),
        aligned(n * round_up(v.shape[2], rows), q),
        aligned(n, q),
        aligned(n, q),
        aligned(n, q),
        aligned(n, q),
        (
            aligned(n * round_up(v.shape[2], rows), q),
            aligned(n, q),
            aligned(n, q),
        ),
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.empty(lanes, np.int64),
        np.empty(max(q.shape[2], v.shape[2]), q.dtype),
    )


@inner
def end_stretch(work, lanes, is_first):
    """Add the sums of a stretch of keys to those before it, and start anew.

    A chain of additions over all tiles of a long row would pile up its
    rounding errors; so it gets one for every stretch, and one over stretches.
    """
    acc, m, l = work.past
    if is_first:
        acc[:], l[:] = 0, 0
        m[:] = -np.inf
    wide = len(acc) // len(m)
    for i in range(len(m)):
        base = work.m[i] if work.m[i] > -np.inf else m.dtype.type(0)
        work.corr[i] = math.exp(m[i] - base)
        l[i] = l[i] * work.corr[i] + work.l[i]
        m[i], work.l[i], work.lost[i] = work.m[i], 0, 0
    for i in range(len(acc)):
        lane = i // (wide * lanes) * lanes + i % lanes
        acc[i] = acc[i] * work.corr[lane] + work.acc[i]
        work.acc[i] = 0


@inner
def end_row(work, lanes):
    """Put the sums of all stretches where those of the only one would be."""
    end_stretch(work, lanes, False)
    acc, _, l = work.past
    # compiler: assigning whole arrays would bring in the text of a shape error.
    for i in range(len(acc)):
        work.acc[i] = acc[i]
    for i in range(len(l)):
        work.l[i] = l[i]


@inner
def attend_tile(v, segment, rules, packs, work, first, at, k_first, tile, target):
    """Take the block at `at`, with lanes from `first` on, past one tile of keys."""
    rows, lanes = rows_of(target), lanes_of(v, target)
    head_dim = len(work.q) // len(work.m)
    n_keys = min(tile, segment.seq_k - k_first)
    # Bounds grow from lane to lane: the first and the last lane hold the ends. Sums
    # start at a whole piece, so that no bit depends on which lanes stand together.
    t0 = max(work.lo[at] - k_first, 0) // PIECE * PIECE
    t1 = min(work.hi[at + lanes - 1] - k_first, n_keys)
    if t0 >= t1:
        return
    panel = segment.panel + k_first // rows
    for t in range(t0, t1, rows):
        key_at = (panel + t // rows) * rows * head_dim
        s_at = (t - t0) * lanes
        score_panel(
            packs.k, key_at, work.q, at * head_dim, work.s, s_at,
            head_dim, rules.scale, target,
        )  # fmt: skip
    apply_data(segment, rules, first, work.s, k_first + t0, t1 - t0, lanes, target)
    hide_edges(work.s, k_first + t0, t1 - t0, work.lo, work.hi, at, lanes)
    softmax_tile(work.s, 0, t1 - t0, work.m, work.l, work.lost, work.corr, at, target)
    padded, wide = round_up(n_keys, rows), round_up(v.shape[2], rows)
    for d in range(0, wide, rows):
        value_at = panel * rows * wide + d * padded + t0 * rows
        accumulate_panel(
            packs.v, value_at, work.s, 0, work.corr, at, work.acc,
            at * wide + d * lanes, t1 - t0, target,
        )  # fmt: skip
    for t in range(t0, t1):
        if packs.poison[panel + t // rows]:
            s_at, acc_at = (t - t0) * lanes, at * wide
            add_poison(
                v, segment, rules, work, first, at, k_first + t, s_at, acc_at, lanes
            )


@inner
def add_poison(v, segment, rules, work, first, at, j, s_at, acc_at, lanes):
    """Add what is not finite in value `j` to the lanes that attend it, to no other."""
    infinity = v.dtype.type(np.inf)
    for lane in range(lanes):
        if is_visible(segment, rules, first, lane, work.lo, work.hi, at, j):
            p = work.s[s_at + lane]
            for d in range(v.shape[2]):
                x = v[segment.k_start + j, segment.kv_head, d]
                if not abs(x) < infinity:
                    work.acc[acc_at + d * lanes + lane] += p * x
