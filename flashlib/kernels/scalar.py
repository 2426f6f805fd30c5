"""Walk the keys of a row in tiles of 64, in plain loops (chapters 5, 6).

This is the loop of the text, step by step; loops shaped for speed come in chapters
7 and 9. A row is held in `m`, `l` and two small buffers that every row uses again:
`s`, a tile of scores (64 of them are 256 bytes in float32), and `acc`, one row of
values (128 of them are 512 bytes).

A chain of additions as long as the row would pile up its rounding errors. So
`l` is a compensated sum (Kahan, 1965): a `compensation` holds what rounding took
from it. And the values of a tile are summed from 0, in the row of the result, and
join `acc` together.

Kernels are called with C-ordered, writable arrays of one float type:

============  =======================================================
q             ``[seq_q, n_heads, head_dim]``
k             ``[seq_k, n_kv_heads, head_dim]``
v             ``[seq_k, n_kv_heads, head_dim_v]``
mask          bool, rank 3, axes 1 or full; size 0 for no mask
bias          floats, rank 3, axes 1 or full; size 0 for no bias
sink          ``[n_heads]``, -inf for no sink
scale         float
softcap       float, 0 for no cap
left, right   reach of the band on both sides of a row's position
tile          keys per tile, few enough for one chain of additions
out           ``[seq_q, n_heads, head_dim_v]``, written
lse           ``[seq_q, n_heads]``, written
============  =======================================================
"""

import numpy as np

from flashlib.kernels.compensation import kahan_add
from flashlib.kernels.jit import exact, kernel

__all__ = ["flash_rows"]


@kernel
def dot(a, b):
    """Return the dot product of two rows."""
    total = a.dtype.type(0)
    for d in range(a.size):
        total += a[d] * b[d]
    return total


@kernel
def cell(data, h, i, j):
    """Return what a mask or bias has for row i and key j; an axis of 1 is repeated."""
    heads, rows, keys = data.shape
    return data[min(h, heads - 1), min(i, rows - 1), min(j, keys - 1)]


@kernel
def is_hidden(mask, bias, h, i, j):
    """Whether mask or bias hides key j from row i."""
    if mask.size > 0 and not cell(mask, h, i, j):
        return True
    return bias.size > 0 and cell(bias, h, i, j) == -np.inf


@exact
def cap(s, softcap):
    """Return a capped score.

    subtle: 1 / softcap is infinite for the smallest numbers, so the compiler
    must not multiply by it instead of dividing.
    """
    return softcap * np.tanh(s / softcap)


@kernel
def score(q_row, k_row, scale, softcap, bias, h, i, j):
    """Return one score: scaled, capped, biased."""
    s = dot(q_row, k_row) * scale
    if softcap > 0:
        s = cap(s, softcap)
    if bias.size > 0:
        s += cell(bias, h, i, j)
    return s


@kernel
def divide(acc, l, attends, out_row):
    """Write ``acc / l``: 0 for a row without keys, 0 / 0 for one without weight."""
    for d in range(acc.size):
        if l == 0:
            out_row[d] = acc[d] if not attends else np.nan
        else:
            out_row[d] = acc[d] / l


@kernel
def flash_rows(q, k, v, mask, bias, sink, scale, softcap, left, right, tile, out, lse):
    """Write attention of every row of every head into `out` and `lse`."""
    (seq_q, n_heads, _), (seq_k, n_kv_heads, head_dim_v) = q.shape, v.shape
    offset = seq_k - seq_q
    zero, one, lowest = q.dtype.type(0), q.dtype.type(1), q.dtype.type(-np.inf)
    s, acc = np.empty(tile, q.dtype), np.empty(head_dim_v, q.dtype)
    # compiler: asked once, not for every pair of a call without mask and bias
    may_hide = mask.size > 0 or bias.size > 0
    for h in range(n_heads):
        g = h // (n_heads // n_kv_heads)
        for i in range(seq_q):
            lo = max(i + offset - left, 0)
            hi = min(i + offset + right + 1, seq_k)
            m, row = sink[h], out[i, h]
            l, compensation = one if m > lowest else zero, zero
            acc[:] = zero
            attends = False
            for start in range(lo, hi, tile):
                stop = min(start + tile, hi)
                # Pass 1: the scores of the tile, and their maximum.
                m_tile = lowest
                for j in range(start, stop):
                    if not (may_hide and is_hidden(mask, bias, h, i, j)):
                        s_j = score(q[i, h], k[j, g], scale, softcap, bias, h, i, j)
                        s[j - start] = s_j
                        m_tile = max(m_tile, s_j)
                        attends = True
                # A new maximum repairs what is already summed.
                if m_tile > m:
                    corr = np.exp(m - m_tile)
                    l *= corr
                    compensation *= corr
                    for d in range(head_dim_v):
                        acc[d] *= corr
                    m = m_tile
                base = m if m > lowest else zero
                # Pass 2: weights into the denominator, values into the numerator.
                row[:] = zero
                for j in range(start, stop):
                    if not (may_hide and is_hidden(mask, bias, h, i, j)):
                        p = np.exp(s[j - start] - base)
                        l, compensation = kahan_add(l, compensation, p)
                        for d in range(head_dim_v):
                            row[d] += p * v[j, g, d]
                acc += row
            divide(acc, l, attends, row)
            lse[i, h] = m + np.log(l) if l != 0 else lowest
