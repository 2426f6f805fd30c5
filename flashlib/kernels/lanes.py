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
from flashlib.kernels.microkernel import vector_lanes
from flashlib.kernels.scalar import is_hidden
from flashlib.kernels.transpose import gather_lanes, scatter_lanes

__all__ = [
    "Rules",
    "Segment",
    "add_sinks",
    "add_bias",
    "hide_edges",
    "hide_masked",
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
def load_queries(q, segment, first, scratch, at, target):
    """Copy the query rows of a block, transposed, into ``[head_dim, lanes]``."""
    lanes, width = len(scratch.rows), vector_lanes(q, target)
    head_dim = q.shape[2]
    scratch.idle[:] = 0
    row_addresses(q, segment, first, scratch.idle, scratch.rows)
    for lane in range(0, lanes, width):
        gather_lanes(
            scratch.rows, lane, head_dim, scratch.q, at * head_dim + lane, lanes, target
        )


@inner
def start_state(segment, rules, first, scratch, at, lanes):
    """Start the online softmax of a block, and note the keys each lane may see.

    Lanes behind the last row repeat the bounds of the last row; nothing of
    them is stored.
    """
    for lane in range(lanes):
        row, head = row_and_head(segment, first, lane)
        row = min(row, segment.seq_q - 1)
        position = row + segment.seq_k - segment.seq_q
        last = min(max(position + rules.right + 1, 0), segment.seq_k)
        scratch.hi[at + lane] = last
        scratch.lo[at + lane] = min(max(position - rules.left, 0), last)
        scratch.m[at + lane] = rules.sink[head]
        scratch.l[at + lane] = 0


@inner
def add_sinks(segment, rules, first, scratch, at, lanes):
    """Add the weight of the sink to the finished denominators of a block.

    Added last, it meets the same numbers wherever the job of a lane began.
    """
    for lane in range(lanes):
        _, head = row_and_head(segment, first, lane)
        if rules.sink[head] > -math.inf:
            scratch.l[at + lane] += math.exp(rules.sink[head] - scratch.m[at + lane])


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
def row_of_data(data, segment, first, lane):
    """Return what a mask or bias has for a lane, by key; an axis of 1 is repeated."""
    row, head = row_and_head(segment, first, lane)
    row = min(row, segment.seq_q - 1)
    return data[min(head, data.shape[0] - 1), min(row, data.shape[1] - 1)]


@inner
def add_bias(segment, bias, first, s, k_first, n_keys, lanes):
    """Add the bias to the scores of a tile.

    A bias of -inf hides, whatever the score, a NaN too. That is done here: to look
    for it later would read the bias twice.
    """
    if bias.size == 0:
        return
    hidden = s.dtype.type(-np.inf)
    for lane in range(lanes):
        cells = row_of_data(bias, segment, first, lane)
        for t in range(n_keys):
            addend = cells[min(k_first + t, cells.size - 1)]
            total = s[t * lanes + lane] + addend
            s[t * lanes + lane] = hidden if addend == hidden else total


@inner
def hide_masked(segment, mask, first, s, k_first, n_keys, lanes):
    """Hide the scores of a tile that the mask hides."""
    if mask.size == 0:
        return
    hidden = s.dtype.type(-np.inf)
    for lane in range(lanes):
        flags = row_of_data(mask, segment, first, lane)
        for t in range(n_keys):
            if not flags[min(k_first + t, flags.size - 1)]:
                s[t * lanes + lane] = hidden


@inner
def store_rows(segment, rules, first, scratch, at, wide, out, lse, target):
    """Write the finished rows of a block; those without weight get 0 or NaN."""
    lanes, width = len(scratch.rows), vector_lanes(out, target)
    row_addresses(out, segment, first, scratch.idle, scratch.rows)
    for lane in range(0, lanes, width):
        scatter_lanes(
            scratch.acc, at * wide + lane, lanes, out.shape[2], scratch.rows, lane,
            target,
        )  # fmt: skip
    nothing = lse.dtype.type(-np.inf)
    for lane in range(min(lanes, segment.seq_q * segment.group - first)):
        row, head = row_and_head(segment, first, lane)
        i = segment.q_start + row
        if scratch.l[at + lane] != 0:
            lse[i, head] = scratch.m[at + lane] + math.log(scratch.l[at + lane])
            continue
        lse[i, head] = nothing
        for j in range(scratch.lo[at + lane], scratch.hi[at + lane]):
            # Attended, but all scores are -inf: 0 / 0, as on paper.
            if is_visible(segment, rules, first, lane, scratch.lo, scratch.hi, at, j):
                out[i, head] = np.nan
                break
