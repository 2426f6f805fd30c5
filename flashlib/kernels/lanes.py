"""Lay query rows out as lanes, and hide what a lane must not see (chapter 9).

The query rows of all heads of a KV group are numbered ``row * group + head``;
lane n of that list is row ``n // group`` of head ``n % group``. A block of
lanes therefore fills up whatever the group is, and grouped heads read every
key once, together.
"""

import math
from typing import NamedTuple

import numpy as np

from flashlib.kernels.jit import inner
from flashlib.kernels.microkernel import vectors_of
from flashlib.kernels.rows import vector_lanes
from flashlib.kernels.scalar import is_hidden
from flashlib.kernels.tile_softmax import cap_scores
from flashlib.kernels.transpose import gather_lanes, scatter_lanes

__all__ = [
    "Rules",
    "Segment",
    "apply_data",
    "hide_edges",
    "is_visible",
    "load_queries",
    "start_state",
    "store_rows",
]


class Segment(NamedTuple):
    """One sequence of a packed batch, and the KV head that a job works on.

    `panel` is the first panel of both.
    """

    q_start: int
    seq_q: int
    k_start: int
    seq_k: int
    kv_head: int
    group: int
    panel: int


class Rules(NamedTuple):
    """What changes or hides a score; arrays of size 0 do nothing."""

    mask: np.ndarray
    bias: np.ndarray
    sink: np.ndarray
    scale: float
    softcap: float
    left: int
    right: int


@inner
def row_and_head(segment, first, lane):
    """Return the row and the head of a lane; the row may lie behind the last one."""
    n = first + lane
    return n // segment.group, segment.kv_head * segment.group + n % segment.group


@inner
def row_addresses(rows, segment, first, idle, addresses):
    """Write down where the row of every lane starts; `idle` stands for no row."""
    for lane in range(len(addresses)):
        row, head = row_and_head(segment, first, lane)
        if row < segment.seq_q:
            addresses[lane] = rows[segment.q_start + row, head].ctypes.data
        else:
            addresses[lane] = idle.ctypes.data


@inner
def load_queries(q, segment, first, work, at, target):
    """Copy the query rows of a block, transposed, into ``[head_dim, lanes]``."""
    lanes, width = len(work.rows), vector_lanes(q, target)
    head_dim = q.shape[2]
    work.idle[:] = 0
    row_addresses(q, segment, first, work.idle, work.rows)
    for lane in range(0, lanes, width):
        gather_lanes(
            work.rows, lane, head_dim, work.q, at * head_dim + lane, lanes, target
        )


@inner
def start_state(segment, rules, first, m, l, lo, hi, at, lanes):
    """Start the online softmax of a block, and note the keys each lane may see.

    Lanes behind the last row repeat the bounds of the last row; nothing of
    them is stored.
    """
    for lane in range(lanes):
        row, head = row_and_head(segment, first, lane)
        row = min(row, segment.seq_q - 1)
        position = row + segment.seq_k - segment.seq_q
        last = min(max(position + rules.right + 1, 0), segment.seq_k)
        hi[at + lane] = last
        lo[at + lane] = min(max(position - rules.left, 0), last)
        m[at + lane] = rules.sink[head]
        l[at + lane] = 1 if rules.sink[head] > -math.inf else 0


@inner
def hide_edges(s, k_first, n_keys, lo, hi, at, lanes):
    """Set the scores of keys outside ``lo <= j < hi`` of their lane to -inf.

    Only keys that some lane sees and another does not are looked at: bounds
    grow from lane to lane, so the last `lo` and the first `hi` are tightest.
    """
    hidden = s.dtype.type(-np.inf)
    all_lo, all_hi = lo[at + lanes - 1] - k_first, hi[at] - k_first
    for t in range(n_keys):
        if t < all_lo or t >= all_hi:
            j = k_first + t
            for lane in range(lanes):
                if j < lo[at + lane] or j >= hi[at + lane]:
                    s[t * lanes + lane] = hidden


@inner
def is_visible(segment, rules, first, lane, lo, hi, at, j):
    """Whether `lane` of the block attends key `j` of its segment."""
    if j < lo[at + lane] or j >= hi[at + lane]:
        return False
    row, head = row_and_head(segment, first, lane)
    return not is_hidden(rules.mask, rules.bias, head, row, j)


@inner
def apply_data(segment, rules, first, s, k_first, n_keys, lanes, target):
    """Cap the scores of a tile, add the bias, and hide what the data hides."""
    if rules.softcap > 0:
        cap_scores(s, 0, n_keys * vectors_of(target), rules.softcap, target)
    mask, bias = rules.mask, rules.bias
    hidden = s.dtype.type(-np.inf)
    if mask.size + bias.size == 0:
        return
    for lane in range(lanes):
        row, head = row_and_head(segment, first, lane)
        row = min(row, segment.seq_q - 1)
        if bias.size > 0:
            heads, rows, keys = bias.shape
            cells = bias[min(head, heads - 1), min(row, rows - 1)]
            for t in range(n_keys):
                addend = cells[min(k_first + t, keys - 1)]
                total = s[t * lanes + lane] + addend
                s[t * lanes + lane] = hidden if addend == hidden else total
        if mask.size > 0:
            heads, rows, keys = mask.shape
            flags = mask[min(head, heads - 1), min(row, rows - 1)]
            for t in range(n_keys):
                if not flags[min(k_first + t, keys - 1)]:
                    s[t * lanes + lane] = hidden


@inner
def store_rows(segment, rules, first, work, at, wide, out, lse, target):
    """Write the finished rows of a block; those without weight get 0 or NaN."""
    lanes, width = len(work.rows), vector_lanes(out, target)
    row_addresses(out, segment, first, work.idle, work.rows)
    for lane in range(0, lanes, width):
        scatter_lanes(
            work.acc, at * wide + lane, lanes, out.shape[2], work.rows, lane, target
        )
    nothing = lse.dtype.type(-np.inf)
    for lane in range(min(lanes, segment.seq_q * segment.group - first)):
        row, head = row_and_head(segment, first, lane)
        i = segment.q_start + row
        if work.l[at + lane] != 0:
            lse[i, head] = work.m[at + lane] + math.log(work.l[at + lane])
            continue
        lse[i, head] = nothing
        for j in range(work.lo[at + lane], work.hi[at + lane]):
            # Attended, but all scores are -inf: 0 / 0, as on paper.
            if is_visible(segment, rules, first, lane, work.lo, work.hi, at, j):
                out[i, head] = np.nan
                break
