"""Attend a few new queries to a long cache, split over its keys (chapter 14).

One job is one KV head of one sequence over one part of its keys; it leaves a
partial state ``(m, l, acc)``. Whoever finishes the last part of a head merges
the states, in the order of the keys, so that nothing depends on the order in
which threads arrive. How many parts there are depends on the sequence alone,
never on its batch mates or on the number of cores.

A contiguous cache is a paged one with one page per sequence: the kernel knows
only pages.

=============  ============================================================
q              ``[batch, seq_new, n_heads, head_dim]``
places         int64, ``[2, 4]``: for K and V the address of the first page,
               and the bytes from page to page, token to token, head to head
table          int64, ``[batch, max_blocks]``, page numbers
block_len      tokens per page
lengths        int64, ``[batch]``, live keys, the new ones included
n_kv_heads     KV heads
head_dim_v     width of a value
sink           ``[n_heads]``, -inf for none
scale          float
softcap        float, 0 for no cap
left, right    reach of the band around the position of a row
num_splits     parts of every sequence, 0 for as many as its length asks for
n_workers      threads
out, lse       ``[batch, seq_new, n_heads, head_dim_v]`` and ``[...]``
=============  ============================================================
"""

import math
from typing import NamedTuple

import numpy as np
from numba import prange

from flashlib.kernels.jit import inner
from flashlib.kernels.rows import add_rows, dot_rows, softmax_row, vector_lanes
from flashlib.kernels.threads import aligned, counters, next_job
from flashlib.kernels.tile_softmax import cap_scores

__all__ = ["build_decode"]

# Keys per step: their scores stay in the first-level cache.
STEP = 64
# Keys per part where nobody asks for a number of parts: half a megabyte of K
# and V at 128 floats, long enough to hide the cost of a job.
PART = 256


class Cache(NamedTuple):
    """Where the rows of the cache lie."""

    places: np.ndarray
    table: np.ndarray
    block_len: int


class Rules(NamedTuple):
    """What changes a score, and how far a row sees."""

    scale: float
    softcap: float
    left: int
    right: int


class Partial(NamedTuple):
    """The states of all parts, ``[n_parts, n_kv_heads, lanes, ...]``."""

    m: np.ndarray
    l: np.ndarray
    acc: np.ndarray


class Work(NamedTuple):
    """What one thread works in."""

    q: np.ndarray
    s: np.ndarray
    k_rows: np.ndarray
    v_rows: np.ndarray
    lo: np.ndarray
    hi: np.ndarray


@inner
def list_parts(lengths, seq_new, left, num_splits):
    """Cut the keys that the rows of every sequence may see into parts.

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
        wanted = num_splits if num_splits > 0 else (n_keys + PART - 1) // PART
        counts[b] = max(min(wanted, n_keys), 1)
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
def make_work(q, n_lanes):
    """Allocate the buffers of one thread."""
    return Work(
        aligned(n_lanes * q.shape[3], q),
        aligned(n_lanes * STEP, q),
        np.empty(STEP, np.int64),
        np.empty(STEP, np.int64),
        np.empty(n_lanes, np.int64),
        np.empty(n_lanes, np.int64),
    )


@inner
def load_lanes(q, b, kv_head, group, length, rules, work):
    """Copy the queries of one KV head, and note the keys that each may see."""
    seq_new, head_dim = q.shape[1], q.shape[3]
    for lane in range(seq_new * group):
        row, head = lane // group, kv_head * group + lane % group
        position = length - seq_new + row
        work.lo[lane] = max(position - rules.left, 0)
        work.hi[lane] = min(position + rules.right + 1, length)
        for d in range(head_dim):
            work.q[lane * head_dim + d] = q[b, row, head, d]


@inner
def find_rows(cache, b, kv_head, first, count, work):
    """Write down the addresses of `count` keys and values from `first` on."""
    page, slot = first // cache.block_len, first % cache.block_len
    for t in range(count):
        number = cache.table[b, page]
        for which, rows in ((0, work.k_rows), (1, work.v_rows)):
            base, per_page, per_token, per_head = cache.places[which]
            rows[t] = base + number * per_page + slot * per_token + kv_head * per_head
        slot += 1
        if slot == cache.block_len:
            page, slot = page + 1, 0


@inner
def score_step(work, rules, count, n_lanes, head_dim, target):
    """Score `count` keys, four at a time, for pairs of lanes."""
    q, s, rows, scale = work.q, work.s, work.k_rows, rules.scale
    for lane in range(0, n_lanes, 2):
        q_at, s_at, pair = lane * head_dim, lane * STEP, lane + 1 < n_lanes
        whole = count // 4 * 4
        for t in range(0, whole, 4):
            if pair:
                dot_rows(rows, t, q, q_at, s, s_at, STEP, head_dim, scale, 4, 2, target)
            else:
                dot_rows(rows, t, q, q_at, s, s_at, STEP, head_dim, scale, 4, 1, target)
        for t in range(whole, count):
            if pair:
                dot_rows(rows, t, q, q_at, s, s_at, STEP, head_dim, scale, 1, 2, target)
            else:
                dot_rows(rows, t, q, q_at, s, s_at, STEP, head_dim, scale, 1, 1, target)


@inner
def weigh_step(work, rules, first, count, partial, at, n_lanes, head_dim_v, target):
    """Hide, and take every lane through the online softmax."""
    width = vector_lanes(work.s, target)
    hidden = work.s.dtype.type(-np.inf)
    padded = (count + width - 1) // width * width
    for lane in range(n_lanes):
        s_at = lane * STEP
        if rules.softcap > 0:
            cap_scores(work.s, s_at, padded // width, rules.softcap, target)
        for t in range(count):
            if not work.lo[lane] <= first + t < work.hi[lane]:
                work.s[s_at + t] = hidden
        for t in range(count, padded):
            work.s[s_at + t] = hidden
        corr = softmax_row(
            work.s, s_at, padded // width, partial.m, partial.l, at + lane, target
        )
        acc_at = (at + lane) * head_dim_v
        for d in range(head_dim_v):
            partial.acc[acc_at + d] *= corr


@inner
def add_step(work, first, count, partial, at, n_lanes, head_dim_v, target):
    """Add the values; a key that some lane does not see is added lane by lane."""
    rows, s, acc = work.v_rows, work.s, partial.acc
    start = min(max(work.lo[n_lanes - 1] - first, 0), count)
    stop = max(min(work.hi[0] - first, count), start)
    whole = start + (stop - start) // 4 * 4
    for lane in range(0, n_lanes, 2):
        s_at, acc_at, pair = lane * STEP, (at + lane) * head_dim_v, lane + 1 < n_lanes
        for t in range(start, whole, 4):
            if pair:
                add_rows(rows, t, s, s_at, STEP, acc, acc_at, head_dim_v, 4, 2, target)
            else:
                add_rows(rows, t, s, s_at, STEP, acc, acc_at, head_dim_v, 4, 1, target)
        for t in range(whole, stop):
            if pair:
                add_rows(rows, t, s, s_at, STEP, acc, acc_at, head_dim_v, 1, 2, target)
            else:
                add_rows(rows, t, s, s_at, STEP, acc, acc_at, head_dim_v, 1, 1, target)
    for t in range(count):
        if start <= t < stop:
            continue
        for lane in range(n_lanes):
            if work.lo[lane] <= first + t < work.hi[lane]:
                acc_at = (at + lane) * head_dim_v
                add_rows(
                    rows, t, s, lane * STEP, STEP, acc, acc_at, head_dim_v, 1, 1, target
                )


@inner
def merge_parts(
    partial, work, first_at, stride, n_parts, sink, kv_head, group, out, lse
):
    """Merge the parts of one KV head of one sequence into its result."""
    n_lanes, head_dim_v = len(work.lo), out.shape[2]
    nothing, zero = lse.dtype.type(-np.inf), lse.dtype.type(0)
    for lane in range(n_lanes):
        row, head = lane // group, kv_head * group + lane % group
        m = sink[head]
        for part in range(n_parts):
            m = max(m, partial.m[first_at + part * stride + lane])
        base = m if m > nothing else zero
        l = math.exp(sink[head] - base)
        result = out[row, head]
        result[:] = zero
        for part in range(n_parts):
            at = first_at + part * stride + lane
            corr = math.exp(partial.m[at] - base)
            l += partial.l[at] * corr
            for d in range(head_dim_v):
                result[d] += partial.acc[at * head_dim_v + d] * corr
        if l != 0:
            for d in range(head_dim_v):
                result[d] /= l
            lse[row, head] = m + math.log(l)
        else:
            # Attended, but all scores are -inf: 0 / 0, as on paper.
            if work.lo[lane] < work.hi[lane]:
                result[:] = np.nan
            lse[row, head] = nothing


@inner
def run_part(q, cache, rules, work, partial, kv_head, part, at, head_dim_v, target):
    """Compute the state of one part for all lanes of one KV head."""
    b, start, stop = part[0], part[1], part[2]
    n_lanes, head_dim = len(work.lo), q.shape[3]
    for first in range(start, stop, STEP):
        count = min(STEP, stop - first)
        find_rows(cache, b, kv_head, first, count, work)
        score_step(work, rules, count, n_lanes, head_dim, target)
        weigh_step(work, rules, first, count, partial, at, n_lanes, head_dim_v, target)
        add_step(work, first, count, partial, at, n_lanes, head_dim_v, target)


@inner
def run_parts(
    q, cache, rules, sink, lengths, parts, partial, counter, finished, n_kv_heads,
    head_dim_v, out, lse, target,
):  # fmt: skip
    """Run jobs until none is left."""
    group = q.shape[2] // n_kv_heads
    n_lanes = q.shape[1] * group
    work = make_work(q, n_lanes)
    stride = n_kv_heads * n_lanes
    job = next_job(counter)
    while job < len(parts) * n_kv_heads:
        number, kv_head = job // n_kv_heads, job % n_kv_heads
        part = parts[number]
        b = part[0]
        at = number * stride + kv_head * n_lanes
        partial.m[at : at + n_lanes] = -np.inf
        partial.l[at : at + n_lanes] = 0
        partial.acc[at * head_dim_v : (at + n_lanes) * head_dim_v] = 0
        load_lanes(q, b, kv_head, group, lengths[b], rules, work)
        run_part(q, cache, rules, work, partial, kv_head, part, at, head_dim_v, target)
        before, n_parts = part[3], part[4]
        place = b * n_kv_heads + kv_head
        if next_job(finished[place : place + 1]) == n_parts - 1:
            merge_parts(
                partial, work, at - before * stride, stride, n_parts, sink, kv_head,
                group, out[b], lse[b],
            )  # fmt: skip
        job = next_job(counter)


def build_decode(decorate, target, stamp):
    """Return the kernel for one register width, see `build_blocked`."""

    @decorate
    def attend(
        q, places, table, block_len, lengths, n_kv_heads, sink, scale, softcap, left,
        right, num_splits, n_workers, out, lse,
    ):  # fmt: skip
        parts = list_parts(lengths, q.shape[1], left, num_splits)
        head_dim_v = out.shape[3]
        states = len(parts) * n_kv_heads * (q.shape[1] * (q.shape[2] // n_kv_heads))
        m, l = np.empty(states, q.dtype), np.empty(states, q.dtype)
        acc = np.empty(states * head_dim_v, q.dtype)
        counter, finished = counters(1), counters(len(q) * n_kv_heads)
        for _ in prange(n_workers):
            run_parts(
                q, Cache(places, table, block_len), Rules(scale, softcap, left, right),
                sink, lengths, parts, Partial(m, l, acc), counter, finished, n_kv_heads,
                head_dim_v, out, lse, target,
            )  # fmt: skip
        return stamp

    return attend
