"""Change one thing at a time: the score matrix, or the loop bound (chapter 11).

Four paths of causal attention over the same inner loops: dot products of four keys at
a time, the compiler's exponential, weighted rows of four values at a time, and one
division per output. Two things can be chosen:

- with `bounded`, row i stops at key i; without it every row visits every key, and the
  scores of the future are computed and then overwritten by -inf;
- a matrix `s` of ``[seq, seq]`` is filled, masked and read pass by pass; a strip `s` of
  ``[1, tile]`` is used again for every tile, with the repair of online softmax.
"""

import numpy as np
from numba import prange

from flashlib.kernels.jit import inner
from flashlib.kernels.room import aligned
from flashlib.kernels.rows import add_rows, dot_rows
from flashlib.kernels.threads import counters, fetch_add

__all__ = ["build_ablation"]


@inner
def row_places(x, head):
    """Return the addresses of the rows of one head."""
    places = np.empty(len(x), np.int64)
    for j in range(len(x)):
        places[j] = x[j, head].ctypes.data
    return places


@inner
def score_row(q, q_at, k_rows, start, stop, scale, s, s_at, target):
    """Write the scores of keys `start` to `stop` to ``s[s_at + start]`` and on."""
    depth = q.shape[2]
    whole = start + (stop - start) // 4 * 4
    for j in range(start, whole, 4):
        dot_rows(k_rows, j, q, q_at, s, s_at, 0, depth, scale, 4, 1, target)
    for j in range(whole, stop):
        dot_rows(k_rows, j, q, q_at, s, s_at, 0, depth, scale, 1, 1, target)


@inner
def hide_future(s_row, i, start, stop):
    """Overwrite the scores of keys after i, which are computed all the same."""
    for j in range(max(i + 1, start), stop):
        s_row[j - start] = -np.inf


@inner
def largest(s_row, count):
    """Return the largest of the first `count` scores."""
    m = s_row[0]
    for t in range(1, count):
        m = max(m, s_row[t])
    return m


@inner
def weigh_row(s_row, count, m, l):
    """Turn scores into weights where they stand; return the grown denominator."""
    for t in range(count):
        p = np.exp(s_row[t] - m)
        s_row[t] = p
        l += p
    return l


@inner
def add_values(s, s_at, v_rows, start, stop, acc, target):
    """Add the values of keys `start` to `stop`, weighted, to `acc`."""
    whole = start + (stop - start) // 4 * 4
    for j in range(start, whole, 4):
        add_rows(v_rows, j, s, s_at, 0, acc, 0, acc.size, 4, 1, target)
    for j in range(whole, stop):
        add_rows(v_rows, j, s, s_at, 0, acc, 0, acc.size, 1, 1, target)


@inner
def matrix_head(q, k_rows, v_rows, scale, bounded, h, s, acc, out, target):
    """Attend with the whole matrix of one head, one pass after the other."""
    n, n_heads, depth = q.shape
    sums = np.empty(n, q.dtype)
    for i in range(n):
        q_at, seen = (i * n_heads + h) * depth, i + 1 if bounded else n
        score_row(q, q_at, k_rows, 0, seen, scale, s, i * n, target)
    if not bounded:
        for i in range(n):
            hide_future(s[i], i, 0, n)
    for i in range(n):
        seen = i + 1 if bounded else n
        sums[i] = weigh_row(s[i], seen, largest(s[i], seen), q.dtype.type(0))
    for i in range(n):
        acc[:] = 0
        add_values(s, i * n, v_rows, 0, i + 1 if bounded else n, acc, target)
        for d in range(acc.size):
            out[i, h, d] = acc[d] / sums[i]


@inner
def stream_head(q, k_rows, v_rows, scale, bounded, h, s, acc, out, target):
    """Attend with a strip of scores, tile after tile."""
    n, n_heads, depth = q.shape
    for i in range(n):
        m, l = q.dtype.type(-np.inf), q.dtype.type(0)
        acc[:] = 0
        q_at, end = (i * n_heads + h) * depth, i + 1 if bounded else n
        for start in range(0, end, s.size):
            stop = min(start + s.size, end)
            score_row(q, q_at, k_rows, start, stop, scale, s, -start, target)
            if not bounded:
                hide_future(s[0], i, start, stop)
            m_tile = largest(s[0], stop - start)
            if m_tile > m:
                corr = np.exp(m - m_tile)
                l *= corr
                for d in range(acc.size):
                    acc[d] *= corr
                m = m_tile
            l = weigh_row(s[0], stop - start, m, l)
            add_values(s, -start, v_rows, start, stop, acc, target)
        for d in range(acc.size):
            out[i, h, d] = acc[d] / l


@inner
def attend_heads(counter, q, k, v, scale, bounded, s, out, target):
    """Take heads until none is left; the height of `s` says which path."""
    acc, group = aligned(v.shape[2], q), q.shape[1] // k.shape[1]
    h = fetch_add(counter)
    while h < q.shape[1]:
        k_rows, v_rows = row_places(k, h // group), row_places(v, h // group)
        if len(s) > 1:
            matrix_head(q, k_rows, v_rows, scale, bounded, h, s, acc, out, target)
        else:
            stream_head(q, k_rows, v_rows, scale, bounded, h, s, acc, out, target)
        h = fetch_add(counter)


def build_ablation(decorate, target, stamp):
    """Return the kernel of all four paths, see `flashlib.kernels.blocked`.

    It is called with ``q [seq, n_heads, head_dim]``, k and v with n_kv_heads, `scale`,
    `bounded`, the scores ``s [n_workers, 1 or seq, width]``, and ``out``.
    """

    @decorate
    def attend(q, k, v, scale, bounded, s, out):
        counter = counters(1)
        for worker in prange(len(s)):
            attend_heads(counter, q, k, v, scale, bounded, s[worker], out, target)
        return stamp

    return attend
