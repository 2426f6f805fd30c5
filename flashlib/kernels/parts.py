"""Cut a long row of keys into parts, and merge what they leave (chapter 14)."""

import math
from typing import NamedTuple

import numpy as np

from flashlib.chains import CHAIN, STRETCH
from flashlib.kernels.compensation import two_sum_add
from flashlib.kernels.jit import inner

__all__ = ["Partial", "list_parts", "merge_parts"]

# Keys per part where nobody asks for a number of parts: half a megabyte of K
# and V at 128 floats, long enough to hide the cost of a job.
PART = 256


class Partial(NamedTuple):
    """The states of all parts, ``[n_parts, n_kv_heads, lanes, ...]``.

    `compensation` holds what rounding took from `l`.
    """

    m: np.ndarray
    l: np.ndarray
    compensation: np.ndarray
    acc: np.ndarray


@inner
def list_parts(lengths, seq_new, left, num_splits):
    """Cut the keys that the rows of every sequence may see into parts.

    A part is never longer than a stretch, whatever `num_splits` asks for.

    Returns
    -------
    int64, ``[n_parts, 5]``
        Sequence, first key, key behind the last, how many parts of the
        sequence come before, and how many it has.
    """
    batch = len(lengths)
    counts = np.ones(batch, np.int64)
    for b in range(batch):
        n_keys = lengths[b] - max(lengths[b] - seq_new - left, 0)
        usual = min((n_keys + PART - 1) // PART, CHAIN)
        wanted = num_splits if num_splits > 0 else usual
        least = (n_keys + STRETCH - 1) // STRETCH
        counts[b] = max(min(wanted, n_keys), least, 1)
    parts = np.empty((counts.sum(), 5), np.int64)
    number = 0
    for b in range(batch):
        first = max(lengths[b] - seq_new - left, 0)
        n_keys, n_parts = lengths[b] - first, counts[b]
        for n in range(n_parts):
            parts[number, 0] = b
            parts[number, 1] = first + n_keys * n // n_parts
            parts[number, 2] = first + n_keys * (n + 1) // n_parts
            parts[number, 3] = n
            parts[number, 4] = n_parts
            number += 1
    return parts


@inner
def merge_parts(
    partial, scratch, first_at, stride, n_parts, sink, kv_head, group, out, lse
):
    """Merge the parts of one KV head of one sequence into its result."""
    n_lanes, head_dim_v = len(scratch.lo), out.shape[2]
    nothing, zero = lse.dtype.type(-np.inf), lse.dtype.type(0)
    for lane in range(n_lanes):
        row, head = lane // group, kv_head * group + lane % group
        m = sink[head]
        for part in range(n_parts):
            m = max(m, partial.m[first_at + part * stride + lane])
        base = m if m > nothing else zero
        l, compensation = math.exp(sink[head] - base), zero
        result = out[row, head]
        result[:] = zero
        for part in range(n_parts):
            at = first_at + part * stride + lane
            corr = math.exp(partial.m[at] - base)
            # A part may weigh more than all parts before it.
            l, compensation = two_sum_add(l, compensation, partial.l[at] * corr)
            for d in range(head_dim_v):
                result[d] += partial.acc[at * head_dim_v + d] * corr
        if l != 0:
            for d in range(head_dim_v):
                result[d] /= l
            lse[row, head] = m + math.log(l)
        else:
            # Attended, but all scores are -inf: 0 / 0, as on paper.
            if scratch.lo[lane] < scratch.hi[lane]:
                result[:] = np.nan
            lse[row, head] = nothing
