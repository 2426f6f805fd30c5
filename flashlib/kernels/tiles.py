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
from flashlib.kernels.lane_product import LANES, by_step, multiply
from flashlib.kernels.scalar import cap, is_hidden
from flashlib.kernels.threads import counters, next_job

__all__ = ["build_tiles"]


class Tile(NamedTuple):
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
def make_tile(q, v, tile):
    """Allocate the buffers of one thread, padding filled with zeros."""
    width, width_v, n_keys = by_step(q.shape[2]), by_step(v.shape[2]), by_step(tile)
    return Tile(
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
def start_lanes(q, h, first, offset, seq_k, sink, left, right, work):
    """Load the query rows, transposed, and start the online softmax of each.

    Lanes behind the last row hold zeros and see no key.
    """
    work.acc[:] = 0
    for lane in range(LANES):
        i = first + lane
        work.m[lane] = sink[h]
        work.l[lane] = 1 if sink[h] > -np.inf else 0
        work.attends[lane] = False
        work.lo[lane], work.hi[lane] = seq_k, 0
        if i < len(q):
            work.lo[lane] = min(max(i + offset - left, 0), seq_k)
            work.hi[lane] = min(max(i + offset + right + 1, 0), seq_k)
        for d in range(q.shape[2]):
            work.q[d, lane] = q[i, h, d] if i < len(q) else 0


@inner
def copy_rows(rows, g, start, n_keys, tile):
    """Copy a tile of keys or values of one head; return whether all are finite.

    Rows of an incomplete last step become zeros.
    """
    zero, probe = tile.dtype.type(0), tile.dtype.type(0)
    for t in range(n_keys):
        row, copy = rows[start + t, g], tile[t]
        for d in range(row.size):
            copy[d] = row[d]
            # 0 * x is NaN for every x that is not finite, and so is then the sum.
            probe += row[d] * zero
    tile[n_keys : by_step(n_keys)] = 0
    return probe == zero


@inner
def clear_poison(tile, n_keys):
    """Set what is not finite to 0.

    Hidden, it must not reach a lane even through ``0 * NaN``; attended, it is added
    by :func:`add_poison`.
    """
    infinity = tile.dtype.type(np.inf)
    for t in range(n_keys):
        for d in range(tile.shape[1]):
            if not abs(tile[t, d]) < infinity:
                tile[t, d] = 0


@inner
def hide(mask, bias, softcap, h, first, start, n_keys, work):
    """Cap the scores of a tile, add the bias, and hide what a lane must not see."""
    s, hidden, data = work.s, work.s.dtype.type(-np.inf), mask.size + bias.size > 0
    for t in range(by_step(n_keys)):
        j = start + t
        for lane in range(LANES):
            if softcap > 0:
                s[t, lane] = cap(s[t, lane], softcap)
            if t >= n_keys or not work.lo[lane] <= j < work.hi[lane]:
                s[t, lane] = hidden
            elif data and is_hidden(mask, bias, h, first + lane, j):
                s[t, lane] = hidden
            else:
                work.attends[lane] = True
                if bias.size > 0:
                    heads, rows, keys = bias.shape
                    row, key = min(first + lane, rows - 1), min(j, keys - 1)
                    s[t, lane] += bias[min(h, heads - 1), row, key]


@inner
def weigh(n_keys, work):
    """Turn scores into weights, and take `m`, `l` and `acc` past them."""
    s, m, l, corr = work.s, work.m, work.l, work.corr
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
def add_poison(v, g, mask, bias, h, first, start, n_keys, work):
    """Add values that are not finite to the lanes that attend them, to no other."""
    infinity = v.dtype.type(np.inf)
    for t in range(n_keys):
        j = start + t
        for lane in range(LANES):
            sees = work.lo[lane] <= j < work.hi[lane]
            if sees and not is_hidden(mask, bias, h, first + lane, j):
                for d in range(v.shape[2]):
                    x = v[j, g, d]
                    if not abs(x) < infinity:
                        work.acc[d, lane] += work.s[t, lane] * x


@inner
def take_tile(k, v, g, mask, bias, scale, softcap, h, first, start, n_keys, edge, work):
    """Take all lanes past one tile of keys."""
    padded = by_step(n_keys)
    copy_rows(k, g, start, n_keys, work.k)
    finite = copy_rows(v, g, start, n_keys, work.v)
    if not finite:
        clear_poison(work.v, n_keys)
    multiply(work.k.reshape(-1), work.k.shape[1], 1, work.q, work.s[:padded])
    for t in range(padded):
        for lane in range(LANES):
            work.s[t, lane] *= scale
    if edge or softcap > 0 or padded > n_keys:
        hide(mask, bias, softcap, h, first, start, n_keys, work)
    else:
        work.attends[:] = True
    weigh(padded, work)
    multiply(work.v.reshape(-1), 1, work.v.shape[1], work.s[:padded], work.pv)
    for d in range(len(work.acc)):
        for lane in range(LANES):
            acc = work.acc[d, lane] * work.corr[lane]
            work.acc[d, lane] = acc + work.pv[d, lane]
    if not finite:
        add_poison(v, g, mask, bias, h, first, start, n_keys, work)


@inner
def store_lanes(h, first, work, out, lse):
    """Write the finished rows: 0 for one without keys, 0 / 0 for one without weight."""
    for lane in range(min(LANES, len(out) - first)):
        l, i = work.l[lane], first + lane
        for d in range(out.shape[2]):
            if l == 0:
                out[i, h, d] = np.nan if work.attends[lane] else 0
            else:
                out[i, h, d] = work.acc[d, lane] / l
        lse[i, h] = work.m[lane] + np.log(l) if l != 0 else -np.inf


@inner
def run_job(
    q, k, v, mask, bias, sink, scale, softcap, left, right, tile, h, first, work, out,
    lse,
):  # fmt: skip
    """Compute one tile of query rows of head `h`, from row `first` on."""
    offset, g = len(k) - len(q), h // (q.shape[1] // k.shape[1])
    start_lanes(q, h, first, offset, len(k), sink, left, right, work)
    last = min(LANES, len(q) - first) - 1
    data = mask.size + bias.size > 0
    for start in range(work.lo[0], work.hi[last], tile):
        n_keys = min(tile, work.hi[last] - start)
        # Keys that some lane sees and another does not.
        inside = start >= work.lo[last] and start + n_keys <= work.hi[0]
        edge = data or not inside or last < LANES - 1
        take_tile(
            k, v, g, mask, bias, scale, softcap, h, first, start, n_keys, edge, work
        )
    store_lanes(h, first, work, out, lse)


@inner
def run_jobs(
    counter, q, k, v, mask, bias, sink, scale, softcap, left, right, tile, out, lse
):
    """Take tiles of query rows until none is left, the last rows first."""
    work = make_tile(q, v, tile)
    n_tiles = (len(q) + LANES - 1) // LANES
    job = next_job(counter)
    while job < n_tiles * q.shape[1]:
        h, first = job % q.shape[1], (n_tiles - 1 - job // q.shape[1]) * LANES
        run_job(
            q, k, v, mask, bias, sink, scale, softcap, left, right, tile, h, first,
            work, out, lse,
        )  # fmt: skip
        job = next_job(counter)


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
