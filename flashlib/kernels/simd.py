"""Shape the loop of the text for vectors: one core, one row at a time (chapters 7, 9).

Two loops do all the work, and each is written so that a compiler can turn it
into vector instructions. A dot product is one long chain of additions, each
waiting for the one before; four sums that know nothing of each other keep
four additions in flight. Each takes a quarter of the row, so that neighbors in
memory go to the same sum and fill a register together. Adding a weighted row of
values has no chain at all.

Arguments are those of :mod:`flashlib.kernels.scalar`. The two kernels differ in
these loops, and in how they are cut into functions: here one function attends one
head, so that :mod:`flashlib.kernels.pool` can hand out heads.
"""

import numpy as np

from flashlib.kernels.compensation import kahan_add
from flashlib.kernels.jit import inner
from flashlib.kernels.scalar import cap, cell, divide, is_hidden

__all__ = ["attend_head", "build_simd"]


@inner
def dot(a, b):
    """Return the dot product of two rows, a quarter of it in each of four sums."""
    zero = a.dtype.type(0)
    s0, s1, s2, s3 = zero, zero, zero, zero
    part = a.size // 4
    for d in range(part):
        s0 += a[d] * b[d]
        s1 += a[d + part] * b[d + part]
        s2 += a[d + 2 * part] * b[d + 2 * part]
        s3 += a[d + 3 * part] * b[d + 3 * part]
    for d in range(4 * part, a.size):
        s0 += a[d] * b[d]
    return (s0 + s1) + (s2 + s3)


@inner
def saxpy(acc, p, row):
    """Add ``p * row`` to `acc`; every element is on its own."""
    for d in range(acc.size):
        acc[d] += p * row[d]


@inner
def score_tile(q_row, k, mask, bias, h, g, i, start, stop, scale, softcap, s):
    """Write the scores of a tile into `s`; return their maximum and how many."""
    may_hide = mask.size > 0 or bias.size > 0
    m_tile, seen = q_row.dtype.type(-np.inf), 0
    for j in range(start, stop):
        if may_hide and is_hidden(mask, bias, h, i, j):
            continue
        s_j = dot(q_row, k[j, g]) * scale
        if softcap > 0:
            s_j = cap(s_j, softcap)
        if bias.size > 0:
            s_j += cell(bias, h, i, j)
        s[j - start] = s_j
        m_tile = max(m_tile, s_j)
        seen += 1
    return m_tile, seen


@inner
def attend_head(
    q, k, v, mask, bias, sink, scale, softcap, left, right, tile, h, out, lse
):
    """Write attention of every row of head `h` into `out` and `lse`."""
    offset, g = len(k) - len(q), h // (q.shape[1] // k.shape[1])
    zero, one, lowest = q.dtype.type(0), q.dtype.type(1), q.dtype.type(-np.inf)
    may_hide = mask.size > 0 or bias.size > 0
    s, acc = np.empty(tile, q.dtype), np.empty(v.shape[2], q.dtype)
    for i in range(len(q)):
        lo = max(i + offset - left, 0)
        hi = min(i + offset + right + 1, len(k))
        m = sink[h]
        l, compensation = one if m > lowest else zero, zero
        acc[:] = zero
        row = out[i, h]
        n_seen = 0
        for start in range(lo, hi, tile):
            stop = min(start + tile, hi)
            m_tile, seen = score_tile(
                q[i, h], k, mask, bias, h, g, i, start, stop, scale, softcap, s
            )
            n_seen += seen
            if m_tile > m:
                corr = np.exp(m - m_tile)
                l *= corr
                compensation *= corr
                for d in range(acc.size):
                    acc[d] *= corr
                m = m_tile
            base = m if m > lowest else zero
            row[:] = zero
            for j in range(start, stop):
                if not (may_hide and is_hidden(mask, bias, h, i, j)):
                    p = np.exp(s[j - start] - base)
                    l, compensation = kahan_add(l, compensation, p)
                    saxpy(row, p, v[j, g])
            saxpy(acc, one, row)
        divide(acc, l, n_seen > 0, row)
        lse[i, h] = m + np.log(l) if l != 0 else lowest


def build_simd(decorate, target, stamp):
    """Return the kernel that runs head after head, see `build_blocked`."""

    @decorate
    def attend(q, k, v, mask, bias, sink, scale, softcap, left, right, tile, out, lse):
        for h in range(q.shape[1]):
            attend_head(
                q, k, v, mask, bias, sink, scale, softcap, left, right, tile, h, out,
                lse,
            )  # fmt: skip
        return stamp

    return attend
