"""Take a block of lanes past one tile of keys: score, hide, weigh, add (chapter 9)."""

import math
from typing import NamedTuple

import numpy as np

from flashlib.kernels.jit import inner
from flashlib.kernels.lanes import add_bias, hide_edges, hide_masked, is_visible
from flashlib.kernels.microkernel import (
    accumulate_panel,
    lanes_of,
    rows_of,
    score_panel,
    vectors_of,
)
from flashlib.kernels.nonfinite import add_nonfinite
from flashlib.kernels.room import aligned, round_up
from flashlib.kernels.tile_softmax import (
    WEIGHTS_PER_CHAIN,
    cap_scores,
    softmax_tile,
)

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
    compensation  likewise: what rounding has taken from `l`
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
    compensation: np.ndarray
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
def end_stretch(scratch, lanes, is_first):
    """Add the sums of a stretch of keys to those before it, and start anew.

    A chain of additions over all tiles of a long row would pile up its
    rounding errors; so it gets one for every stretch, and one over stretches.
    """
    acc, m, l = scratch.past
    if is_first:
        acc[:], l[:] = 0, 0
        m[:] = -np.inf
    wide = len(acc) // len(m)
    for i in range(len(m)):
        base = scratch.m[i] if scratch.m[i] > -np.inf else m.dtype.type(0)
        scratch.corr[i] = math.exp(m[i] - base)
        l[i] = l[i] * scratch.corr[i] + scratch.l[i]
        m[i], scratch.l[i], scratch.compensation[i] = scratch.m[i], 0, 0
    for i in range(len(acc)):
        lane = i // (wide * lanes) * lanes + i % lanes
        acc[i] = acc[i] * scratch.corr[lane] + scratch.acc[i]
        scratch.acc[i] = 0


@inner
def end_row(scratch, lanes):
    """Put the sums of all stretches where those of the only one would be."""
    end_stretch(scratch, lanes, False)
    acc, _, l = scratch.past
    # compiler: assigning whole arrays would bring in the text of a shape error.
    for i in range(len(acc)):
        scratch.acc[i] = acc[i]
    for i in range(len(l)):
        scratch.l[i] = l[i]


@inner
def attend_tile(v, segment, rules, packs, scratch, first, at, k_first, tile, target):
    """Take the block at `at`, with lanes from `first` on, past one tile of keys."""
    rows, lanes = rows_of(target), lanes_of(v, target)
    head_dim = len(scratch.q) // len(scratch.m)
    n_keys = min(tile, segment.seq_k - k_first)
    # Bounds grow from lane to lane: the first and the last lane hold the ends. Sums
    # start at a whole chain, so that no bit depends on which lanes stand together.
    t0 = max(scratch.lo[at] - k_first, 0) // WEIGHTS_PER_CHAIN * WEIGHTS_PER_CHAIN
    t1 = min(scratch.hi[at + lanes - 1] - k_first, n_keys)
    if t0 >= t1:
        return
    panel = segment.panel + k_first // rows
    for t in range(t0, t1, rows):
        key_at = (panel + t // rows) * rows * head_dim
        s_at = (t - t0) * lanes
        score_panel(
            packs.k, key_at, scratch.q, at * head_dim, scratch.s, s_at,
            head_dim, rules.scale, target,
        )  # fmt: skip
    if rules.softcap > 0:
        n_vectors = (t1 - t0) * vectors_of(target)
        cap_scores(scratch.s, 0, n_vectors, rules.softcap, target)
    add_bias(segment, rules.bias, first, scratch.s, k_first + t0, t1 - t0, lanes)
    hide_masked(segment, rules.mask, first, scratch.s, k_first + t0, t1 - t0, lanes)
    hide_edges(scratch.s, k_first + t0, t1 - t0, scratch.lo, scratch.hi, at, lanes)
    softmax_tile(
        scratch.s, 0, t1 - t0, scratch.m, scratch.l, scratch.compensation,
        scratch.corr, at, target,
    )  # fmt: skip
    padded, wide = round_up(n_keys, rows), round_up(v.shape[2], rows)
    for d in range(0, wide, rows):
        value_at = panel * rows * wide + d * padded + t0 * rows
        accumulate_panel(
            packs.v, value_at, scratch.s, 0, scratch.corr, at, scratch.acc,
            at * wide + d * lanes, t1 - t0, target,
        )  # fmt: skip
    for t in range(t0, t1):
        if packs.nonfinite[panel + t // rows]:
            s_at, acc_at = (t - t0) * lanes, at * wide
            add_attended(
                v, segment, rules, scratch, first, at, k_first + t, s_at, acc_at, lanes
            )


@inner
def add_attended(v, segment, rules, scratch, first, at, j, s_at, acc_at, lanes):
    """Add what is not finite in value `j` to the lanes that attend it, to no other."""
    row = v[segment.k_start + j, segment.kv_head]
    for lane in range(lanes):
        if is_visible(segment, rules, first, lane, scratch.lo, scratch.hi, at, j):
            p = scratch.s[s_at + lane]
            add_nonfinite(scratch.acc, acc_at + lane, lanes, p, row)
