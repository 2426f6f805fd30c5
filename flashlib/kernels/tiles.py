"""Take a tile of query rows past tiles of keys, in plain loops (chapter 9).

One job is a tile of query rows of one head. Its rows are *lanes*: every array
of the job ends in an axis of `LANES`, scores included, so that the row of one
query is a column. Then each step of the softmax, the maximum too, is the same
operation for every lane, with no sum across a vector, and a compiler can turn
it into vector instructions by itself. A key that is read once serves all lanes.

Arguments are those of :mod:`flashlib.kernels.scalar`, and `n_workers`.
"""

from typing import NamedTuple

import numpy as np
from numba import prange

from flashlib.kernels.jit import inner
from flashlib.kernels.lane_product import LANES, SQUARE_SIDE, multiply
from flashlib.kernels.nonfinite import add_nonfinite, all_finite, clear_nonfinite
from flashlib.kernels.room import round_up
from flashlib.kernels.scalar import cap, cell, is_hidden
from flashlib.kernels.threads import counters, fetch_add

__all__ = ["build_tiles"]


class Scratch(NamedTuple):
    """What one thread works in; widths and key counts are multiples of four.

    ============  =================================================
    q             ``[head_dim, LANES]``
    k, v          ``[tile, head_dim]``, ``[tile, head_dim_v]``
    s             ``[tile, LANES]``: scores, then weights
    pv, acc       ``[head_dim_v, LANES]``: of one tile, of all so far
    m, l, corr    ``[LANES]``
    lo, hi        ``[LANES]``: keys that the band lets a lane see
    attends       ``[LANES]``: whether a lane has met a key it attends
    ============  =================================================
    """

    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    s: np.ndarray
    pv: np.ndarray
    acc: np.ndarray
    m: np.ndarray
    l: np.ndarray
    corr: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    attends: np.ndarray


@inner
def make_scratch(q, v, tile):
    """Allocate the buffers of one thread, padding filled with zeros."""
    width = round_up(q.shape[2], SQUARE_SIDE)
    width_v = round_up(v.shape[2], SQUARE_SIDE)
    n_keys = round_up(tile, SQUARE_SIDE)
    return Scratch(
        np.zeros((width, LANES), q.dtype),
        np.zeros((n_keys, width), q.dtype),
        np.zeros((n_keys, width_v), q.dtype),
        np.empty((n_keys, LANES), q.dtype),
        np.empty((width_v, LANES), q.dtype),
        np.empty((width_v, LANES), q.dtype),
        np.empty(LANES, q.dtype),
        np.empty(LANES, q.dtype),
        np.empty(LANES, q.dtype),
        np.empty(LANES, np.int64),
        np.empty(LANES, np.int64),
        np.empty(LANES, np.bool_),
    )


@inner
def start_lanes(q, h, first, offset, seq_k, sink, left, right, scratch):
    """Load the query rows, transposed, and start the online softmax of each.

    Lanes behind the last row hold zeros and see no key.
    """
    scratch.acc[:] = 0
    for lane in range(LANES):
        i = first + lane
        scratch.m[lane] = sink[h]
        scratch.l[lane] = 1 if sink[h] > -np.inf else 0
        scratch.attends[lane] = False
        scratch.lo[lane], scratch.hi[lane] = seq_k, 0
        if i < len(q):
            scratch.lo[lane] = min(max(i + offset - left, 0), seq_k)
            scratch.hi[lane] = min(max(i + offset + right + 1, 0), seq_k)
        for d in range(q.shape[2]):
            scratch.q[d, lane] = q[i, h, d] if i < len(q) else 0


@inner
def copy_rows(rows, g, start, n_keys, tile):
    """Copy a tile of keys or values of one head.

    Rows of an incomplete last square become zeros.
    """
    for t in range(n_keys):
        row, copy = rows[start + t, g], tile[t]
        for d in range(row.size):
            copy[d] = row[d]
    tile[n_keys : round_up(n_keys, SQUARE_SIDE)] = 0


@inner
def cap_tile(s, softcap):
    """Cap the scores of a tile."""
    for t in range(len(s)):
        for lane in range(LANES):
            s[t, lane] = cap(s[t, lane], softcap)


@inner
def add_bias(s, bias, h, first, start):
    """Add the bias to the scores of a tile."""
    for t in range(len(s)):
        for lane in range(LANES):
            s[t, lane] += cell(bias, h, first + lane, start + t)


@inner
def hide(mask, bias, h, first, start, n_keys, s, scratch):
    """Hide what a lane must not see, and note which lanes attend a key."""
    hidden, data = s.dtype.type(-np.inf), mask.size + bias.size > 0
    for t in range(len(s)):
        j = start + t
        for lane in range(LANES):
            if t >= n_keys or not scratch.lo[lane] <= j < scratch.hi[lane]:
                s[t, lane] = hidden
            elif data and is_hidden(mask, bias, h, first + lane, j):
                s[t, lane] = hidden
            else:
                scratch.attends[lane] = True


@inner
def weigh(n_keys, scratch):
    """Turn scores into weights, and take `m`, `l` and `acc` past them."""
    s, m, l, corr = scratch.s, scratch.m, scratch.l, scratch.corr
    nothing, zero = s.dtype.type(-np.inf), s.dtype.type(0)
    before, total = m.copy(), np.zeros_like(m)
    for t in range(n_keys):
        for lane in range(LANES):
            m[lane] = s[t, lane] if s[t, lane] > m[lane] else m[lane]
    for lane in range(LANES):
        # A lane without any key yet is measured against 0: -inf - -inf is NaN.
        base = m[lane] if m[lane] > nothing else zero
        corr[lane] = np.exp(before[lane] - base)
        before[lane] = base
    for t in range(n_keys):
        for lane in range(LANES):
            p = np.exp(s[t, lane] - before[lane])
            s[t, lane] = p
            total[lane] += p
    for lane in range(LANES):
        l[lane] = l[lane] * corr[lane] + total[lane]


@inner
def add_attended(v, g, mask, bias, h, first, start, n_keys, scratch):
    """Add values that are not finite to the lanes that attend them, to no other."""
    acc = scratch.acc.reshape(-1)
    for t in range(n_keys):
        j = start + t
        for lane in range(LANES):
            sees = scratch.lo[lane] <= j < scratch.hi[lane]
            if sees and not is_hidden(mask, bias, h, first + lane, j):
                add_nonfinite(acc, lane, LANES, scratch.s[t, lane], v[j, g])


@inner
def take_tile(
    k, v, g, mask, bias, scale, softcap, h, first, start, n_keys, edge, scratch
):
    """Take all lanes past one tile of keys."""
    padded = round_up(n_keys, SQUARE_SIDE)
    s, values = scratch.s[:padded], scratch.v.reshape(-1)
    copy_rows(k, g, start, n_keys, scratch.k)
    copy_rows(v, g, start, n_keys, scratch.v)
    finite = all_finite(values[: n_keys * scratch.v.shape[1]])
    if not finite:
        clear_nonfinite(values[: n_keys * scratch.v.shape[1]])
    multiply(scratch.k.reshape(-1), scratch.k.shape[1], 1, scratch.q, s)
    for t in range(padded):
        for lane in range(LANES):
            s[t, lane] *= scale
    if softcap > 0:
        cap_tile(s, softcap)
    if bias.size > 0:
        add_bias(s, bias, h, first, start)
    if edge or padded > n_keys:
        hide(mask, bias, h, first, start, n_keys, s, scratch)
    else:
        scratch.attends[:] = True
    weigh(padded, scratch)
    multiply(values, 1, scratch.v.shape[1], s, scratch.pv)
    for d in range(len(scratch.acc)):
        for lane in range(LANES):
            acc = scratch.acc[d, lane] * scratch.corr[lane]
            scratch.acc[d, lane] = acc + scratch.pv[d, lane]
    if not finite:
        add_attended(v, g, mask, bias, h, first, start, n_keys, scratch)


@inner
def store_lanes(h, first, scratch, out, lse):
    """Write the finished rows: 0 for one without keys, 0 / 0 for one without weight."""
    for lane in range(min(LANES, len(out) - first)):
        l, i = scratch.l[lane], first + lane
        for d in range(out.shape[2]):
            if l == 0:
                out[i, h, d] = np.nan if scratch.attends[lane] else 0
            else:
                out[i, h, d] = scratch.acc[d, lane] / l
        lse[i, h] = scratch.m[lane] + np.log(l) if l != 0 else -np.inf


@inner
def run_job(
    q, k, v, mask, bias, sink, scale, softcap, left, right, tile, h, first, scratch,
    out, lse,
):  # fmt: skip
    """Compute one tile of query rows of head `h`, from row `first` on."""
    offset, g = len(k) - len(q), h // (q.shape[1] // k.shape[1])
    start_lanes(q, h, first, offset, len(k), sink, left, right, scratch)
    last = min(LANES, len(q) - first) - 1
    data = mask.size + bias.size > 0
    for start in range(scratch.lo[0], scratch.hi[last], tile):
        n_keys = min(tile, scratch.hi[last] - start)
        # Keys that some lane sees and another does not.
        inside = start >= scratch.lo[last] and start + n_keys <= scratch.hi[0]
        edge = data or not inside or last < LANES - 1
        take_tile(
            k, v, g, mask, bias, scale, softcap, h, first, start, n_keys, edge, scratch
        )
    store_lanes(h, first, scratch, out, lse)


@inner
def run_jobs(
    counter, q, k, v, mask, bias, sink, scale, softcap, left, right, tile, out, lse
):
    """Take tiles of query rows until none is left, the last rows first."""
    scratch = make_scratch(q, v, tile)
    n_tiles = (len(q) + LANES - 1) // LANES
    job = fetch_add(counter)
    while job < n_tiles * q.shape[1]:
        h, first = job % q.shape[1], (n_tiles - 1 - job // q.shape[1]) * LANES
        run_job(
            q, k, v, mask, bias, sink, scale, softcap, left, right, tile, h, first,
            scratch, out, lse,
        )  # fmt: skip
        job = fetch_add(counter)


def build_tiles(decorate, target, stamp):
    """Return the kernel that runs tiles of query rows, see `build_blocked`."""

    @decorate
    def attend(
        q, k, v, mask, bias, sink, scale, softcap, left, right, tile, n_workers, out,
        lse,
    ):  # fmt: skip
        counter = counters(1)
        for _ in prange(n_workers):
            run_jobs(
                counter, q, k, v, mask, bias, sink, scale, softcap, left, right, tile,
                out, lse,
            )  # fmt: skip
        return stamp

    return attend
