"""Attend a few new queries to a long cache, split over its keys (chapter 14).

One job is one KV head of one sequence over one part of its keys; it leaves a
partial state ``(m, l, compensation, acc)``, where `compensation` holds what rounding
took from `l`. Whoever finishes the last part of a head merges the states, in the
order of the keys, so that nothing depends on the order in which threads arrive. How
many parts there are depends on the sequence alone, never on its batch mates or on
the number of cores.

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
scale          multiplies every score
softcap        cap of the scores, 0 for none
left, right    reach of the band around the position of a row
num_splits     parts of every sequence, 0 for as many as its length asks for
n_workers      threads
out, lse       ``[batch, seq_new, n_heads, head_dim_v]`` and ``[...]``
=============  ============================================================
"""

import numpy as np
from numba import prange

from flashlib.kernels.decode_step import (
    KEYS_PER_STEP,
    BandRules,
    Cache,
    load_lanes,
    make_scratch,
    take_step,
)
from flashlib.kernels.jit import inner
from flashlib.kernels.parts import Partial, list_parts, merge_parts
from flashlib.kernels.threads import counters, fetch_add

__all__ = ["build_decode"]


@inner
def run_part(q, cache, rules, scratch, partial, kv_head, part, at, head_dim_v, target):
    """Compute the state of one part for all lanes of one KV head."""
    b, start, stop, widths = part[0], part[1], part[2], (q.shape[3], head_dim_v)
    for first in range(start, stop, KEYS_PER_STEP):
        count = min(KEYS_PER_STEP, stop - first)
        take_step(
            scratch, cache, rules, b, kv_head, first, count, partial, at, widths, target
        )


@inner
def run_parts(
    q, cache, rules, sink, lengths, parts, partial, counter, finished, n_kv_heads,
    head_dim_v, out, lse, target,
):  # fmt: skip
    """Run jobs until none is left."""
    group = q.shape[2] // n_kv_heads
    n_lanes = q.shape[1] * group
    scratch = make_scratch(q, n_lanes, head_dim_v)
    stride = n_kv_heads * n_lanes
    job = fetch_add(counter)
    while job < len(parts) * n_kv_heads:
        number, kv_head = job // n_kv_heads, job % n_kv_heads
        part = parts[number]
        b = part[0]
        at = number * stride + kv_head * n_lanes
        partial.m[at : at + n_lanes] = -np.inf
        partial.l[at : at + n_lanes] = 0
        partial.compensation[at : at + n_lanes] = 0
        partial.acc[at * head_dim_v : (at + n_lanes) * head_dim_v] = 0
        load_lanes(q, b, kv_head, group, lengths[b], rules, scratch)
        run_part(
            q, cache, rules, scratch, partial, kv_head, part, at, head_dim_v, target
        )
        before, n_parts = part[3], part[4]
        place = b * n_kv_heads + kv_head
        if fetch_add(finished[place : place + 1]) == n_parts - 1:
            merge_parts(
                partial, scratch, at - before * stride, stride, n_parts, sink, kv_head,
                group, out[b], lse[b],
            )  # fmt: skip
        job = fetch_add(counter)


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
        compensation = np.empty(states, q.dtype)
        acc = np.empty(states * head_dim_v, q.dtype)
        counter, finished = counters(1), counters(len(q) * n_kv_heads)
        for _ in prange(n_workers):
            run_parts(
                q, Cache(places, table, block_len),
                BandRules(scale, softcap, left, right), sink, lengths, parts,
                Partial(m, l, compensation, acc), counter, finished, n_kv_heads,
                head_dim_v, out, lse, target,
            )  # fmt: skip
        return stamp

    return attend
