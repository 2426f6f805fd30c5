"""Take the queries of one KV head past a few rows of a cache (chapter 14)."""

from typing import NamedTuple

import numpy as np

from flashlib.kernels.jit import inner
from flashlib.kernels.microkernel import vector_lanes
from flashlib.kernels.room import aligned, round_up
from flashlib.kernels.row_softmax import softmax_row
from flashlib.kernels.rows import add_rows, dot_rows
from flashlib.kernels.tile_softmax import cap_scores

__all__ = [
    "KEYS_PER_STEP",
    "BandRules",
    "Cache",
    "Scratch",
    "load_lanes",
    "make_scratch",
    "take_step",
]

# Keys per step: their scores stay in the first-level cache.
KEYS_PER_STEP = 64


class Cache(NamedTuple):
    """Where the rows of the cache lie."""

    places: np.ndarray
    table: np.ndarray
    block_len: int


class BandRules(NamedTuple):
    """What changes a score, and how far a row sees; a cache has no mask or bias."""

    scale: float
    softcap: float
    left: int
    right: int


class Scratch(NamedTuple):
    """What one thread works in; `corr` and `acc` are those of one step.

    ============  ======================================================
    q             ``[lanes, head_dim]``
    s             ``[lanes, KEYS_PER_STEP]``: scores, then weights
    corr          ``[lanes]``
    acc           ``[lanes, head_dim_v]``
    k_rows        ``[KEYS_PER_STEP]``: addresses of keys
    v_rows        likewise, of values
    lo, hi        ``[lanes]``: keys that a lane may see
    ============  ======================================================
    """

    q: np.ndarray
    s: np.ndarray
    corr: np.ndarray
    acc: np.ndarray
    k_rows: np.ndarray
    v_rows: np.ndarray
    lo: np.ndarray
    hi: np.ndarray


@inner
def make_scratch(q, n_lanes, head_dim_v):
    """Allocate the buffers of one thread."""
    return Scratch(
        aligned(n_lanes * q.shape[3], q),
        aligned(n_lanes * KEYS_PER_STEP, q),
        aligned(n_lanes, q),
        aligned(n_lanes * head_dim_v, q),
        np.empty(KEYS_PER_STEP, np.int64),
        np.empty(KEYS_PER_STEP, np.int64),
        np.empty(n_lanes, np.int64),
        np.empty(n_lanes, np.int64),
    )


@inner
def load_lanes(q, b, kv_head, group, length, rules, scratch):
    """Copy the queries of one KV head, and note the keys that each may see."""
    seq_new, head_dim = q.shape[1], q.shape[3]
    for lane in range(seq_new * group):
        row, head = lane // group, kv_head * group + lane % group
        position = length - seq_new + row
        scratch.lo[lane] = max(position - rules.left, 0)
        scratch.hi[lane] = min(position + rules.right + 1, length)
        for d in range(head_dim):
            scratch.q[lane * head_dim + d] = q[b, row, head, d]


@inner
def find_rows(cache, b, kv_head, first, count, scratch):
    """Write down the addresses of `count` keys and values from `first` on."""
    page, slot = first // cache.block_len, first % cache.block_len
    for t in range(count):
        number = cache.table[b, page]
        for which, rows in ((0, scratch.k_rows), (1, scratch.v_rows)):
            base, per_page, per_token, per_head = cache.places[which]
            rows[t] = base + number * per_page + slot * per_token + kv_head * per_head
        slot += 1
        if slot == cache.block_len:
            page, slot = page + 1, 0


@inner
def take_step(
    scratch, cache, rules, b, kv_head, first, count, partial, at, widths, target
):
    """Take all lanes past `count` keys from `first` on."""
    n_lanes, (head_dim, head_dim_v) = len(scratch.lo), widths
    find_rows(cache, b, kv_head, first, count, scratch)
    score_step(scratch, rules, count, n_lanes, head_dim, target)
    weigh_step(scratch, rules, first, count, partial, at, n_lanes, target)
    scratch.acc[:] = 0
    add_step(scratch, first, count, n_lanes, head_dim_v, target)
    for lane in range(n_lanes):
        mine, theirs = lane * head_dim_v, (at + lane) * head_dim_v
        for d in range(head_dim_v):
            before = partial.acc[theirs + d] * scratch.corr[lane]
            partial.acc[theirs + d] = before + scratch.acc[mine + d]


@inner
def score_step(scratch, rules, count, n_lanes, head_dim, target):
    """Score `count` keys, four at a time, for pairs of lanes.

    compiler: how many rows and lanes go together decides how many registers are
    in use, so each pair of numbers is a loop of its own and they stand literally.
    """
    q, s, rows, scale = scratch.q, scratch.s, scratch.k_rows, rules.scale
    step = KEYS_PER_STEP
    for lane in range(0, n_lanes, 2):
        q_at, s_at, pair = lane * head_dim, lane * step, lane + 1 < n_lanes
        whole = count // 4 * 4
        for t in range(0, whole, 4):
            if pair:
                dot_rows(rows, t, q, q_at, s, s_at, step, head_dim, scale, 4, 2, target)
            else:
                dot_rows(rows, t, q, q_at, s, s_at, step, head_dim, scale, 4, 1, target)
        for t in range(whole, count):
            if pair:
                dot_rows(rows, t, q, q_at, s, s_at, step, head_dim, scale, 1, 2, target)
            else:
                dot_rows(rows, t, q, q_at, s, s_at, step, head_dim, scale, 1, 1, target)


@inner
def weigh_step(scratch, rules, first, count, partial, at, n_lanes, target):
    """Hide, and take every lane through the online softmax."""
    width = vector_lanes(scratch.s, target)
    hidden = scratch.s.dtype.type(-np.inf)
    padded = round_up(count, width)
    for lane in range(n_lanes):
        s_at = lane * KEYS_PER_STEP
        if rules.softcap > 0:
            cap_scores(scratch.s, s_at, padded // width, rules.softcap, target)
        for t in range(count):
            if not scratch.lo[lane] <= first + t < scratch.hi[lane]:
                scratch.s[s_at + t] = hidden
        for t in range(count, padded):
            scratch.s[s_at + t] = hidden
        scratch.corr[lane] = softmax_row(
            scratch.s, s_at, padded // width, partial.m, partial.l,
            partial.compensation, at + lane, target,
        )  # fmt: skip


@inner
def add_step(scratch, first, count, n_lanes, head_dim_v, target):
    """Add the values; a key that some lane does not see is added lane by lane."""
    rows, s, acc, step = scratch.v_rows, scratch.s, scratch.acc, KEYS_PER_STEP
    start = min(max(scratch.lo[n_lanes - 1] - first, 0), count)
    stop = max(min(scratch.hi[0] - first, count), start)
    whole = start + (stop - start) // 4 * 4
    for lane in range(0, n_lanes, 2):
        s_at, acc_at, pair = lane * step, lane * head_dim_v, lane + 1 < n_lanes
        for t in range(start, whole, 4):
            if pair:
                add_rows(rows, t, s, s_at, step, acc, acc_at, head_dim_v, 4, 2, target)
            else:
                add_rows(rows, t, s, s_at, step, acc, acc_at, head_dim_v, 4, 1, target)
        for t in range(whole, stop):
            if pair:
                add_rows(rows, t, s, s_at, step, acc, acc_at, head_dim_v, 1, 2, target)
            else:
                add_rows(rows, t, s, s_at, step, acc, acc_at, head_dim_v, 1, 1, target)
    for t in range(count):
        if start <= t < stop:
            continue
        for lane in range(n_lanes):
            if scratch.lo[lane] <= first + t < scratch.hi[lane]:
                add_rows(
                    rows, t, s, lane * step, step, acc, lane * head_dim_v,
                    head_dim_v, 1, 1, target,
                )  # fmt: skip
