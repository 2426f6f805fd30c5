"""Run attention as products of panels, on all cores (chapter 9).

One job is a few blocks of lanes of one KV head. It walks the tiles of keys
that its lanes may see; for every tile and block it

1. multiplies the panels of keys with the queries: a tile of scores,
2. hides what lies outside the bounds, the mask or the bias,
3. takes the tile through the online softmax, in registers,
4. multiplies the panels of values with the weights, rescaling as it stores.

Blocks of a job share every tile of K and V while it is in the cache. Jobs are
handed out one at a time, those with the most keys first, so that no core
waits long for another. A result never depends on who computes it: tiles start
at multiples of `tile` from the first key, whatever block they are read for.

=============  ============================================================
q              ``[total_q, n_heads, head_dim]``
k, v           ``[total_k, n_kv_heads, head_dim]``, ``[..., head_dim_v]``
mask, bias     rank 3, axes 1 or full; size 0 for none
sink           ``[n_heads]``, -inf for none
segments       int64, ``[n, 4]``: first query, queries, first key, keys
tile           keys per tile, a multiple of the rows of a panel
n_blocks       blocks of lanes per job
n_workers      threads
out, lse       ``[total_q, n_heads, head_dim_v]``, ``[total_q, n_heads]``
room           for the panels: `n_kv_heads` times the keys and values of all
               segments, each segment and each width a multiple of `rows`
=============  ============================================================
"""

import numpy as np
from numba import prange

from flashlib.chains import CHAIN
from flashlib.kernels.jit import inner
from flashlib.kernels.lanes import (
    Rules,
    Segment,
    add_sinks,
    load_queries,
    start_state,
    store_rows,
)
from flashlib.kernels.microkernel import lanes_of, rows_of
from flashlib.kernels.panels import (
    Packs,
    cut_panels,
    list_tiles,
    pack_tiles,
)
from flashlib.kernels.room import round_up
from flashlib.kernels.threads import counters, fetch_add
from flashlib.kernels.tile_softmax import divide_rows
from flashlib.kernels.tile_step import (
    Scratch,
    attend_tile,
    end_row,
    end_stretch,
    make_scratch,
)

__all__ = ["build_blocked"]


@inner
def list_jobs(segments, lanes_per_job, group):
    """Return segment and first lane of every job, the last rows first."""
    count = 0
    for n in range(len(segments)):
        count += round_up(segments[n, 1] * group, lanes_per_job) // lanes_per_job
    jobs = np.empty((count, 2), np.int64)
    count = 0
    for n in range(len(segments)):
        behind = round_up(segments[n, 1] * group, lanes_per_job)
        for first in range(0, behind, lanes_per_job):
            jobs[count, 0] = n
            jobs[count, 1] = behind - lanes_per_job - first
            count += 1
    return jobs


@inner
def run_job(
    q, v, segment: Segment, rules: Rules, packs: Packs, scratch: Scratch, first, tile,
    out, lse, target,
):  # fmt: skip
    """Compute the rows of one job: all tiles of keys, a few blocks of lanes."""
    rows, lanes = rows_of(target), lanes_of(q, target)
    head_dim_v = v.shape[2]
    wide = round_up(head_dim_v, rows)
    behind = min(len(scratch.m), round_up(segment.seq_q * segment.group - first, lanes))
    scratch.acc[:], scratch.compensation[:] = 0, 0
    for at in range(0, behind, lanes):
        load_queries(q, segment, first + at, scratch, at, target)
        start_state(segment, rules, first + at, scratch, at, lanes)
    # Stretches are those of the sequence, wherever the rows of this job begin.
    start, ended = scratch.lo[0] // tile * tile, 0
    for k_first in range(start, scratch.hi[behind - 1], tile):
        if k_first > start and k_first % (CHAIN * tile) == 0:
            end_stretch(scratch, lanes, ended == 0)
            ended += 1
        for at in range(0, behind, lanes):
            attend_tile(
                v, segment, rules, packs, scratch, first + at, at, k_first, tile, target
            )
    if ended > 0:
        end_row(scratch, lanes)
    for at in range(0, behind, lanes):
        add_sinks(segment, rules, first + at, scratch, at, lanes)
        divide_rows(scratch.acc, at * wide, head_dim_v, scratch.l, at, target)
        store_rows(segment, rules, first + at, scratch, at, wide, out, lse, target)


@inner
def run_jobs(
    q, v, segments, panel_start, rules, packs, jobs, counter, tile, n_blocks, out,
    lse, target,
):  # fmt: skip
    """Run jobs until none is left."""
    scratch = make_scratch(q, v, tile, n_blocks, target)
    group, n_kv_heads = q.shape[1] // v.shape[1], v.shape[1]
    job = fetch_add(counter)
    while job < len(jobs) * n_kv_heads:
        n, first = jobs[job // n_kv_heads]
        kv_head = job % n_kv_heads
        panel = kv_head * packs.n_panels + panel_start[n]
        q_start, seq_q, k_start, seq_k = segments[n]
        segment = Segment(q_start, seq_q, k_start, seq_k, kv_head, group, panel)
        run_job(q, v, segment, rules, packs, scratch, first, tile, out, lse, target)
        job = fetch_add(counter)


def build_blocked(decorate, target, stamp):
    """Return the kernel for one register tile of :data:`flashlib.kernels.targets`.

    `decorate` compiles it, for all cores or for one. `stamp` ties the compiled
    copy on disk to the sources it was made from; the kernel returns it.
    """

    @decorate
    def attend(
        q, k, v, mask, bias, sink, scale, softcap, left, right, segments, tile,
        n_blocks, n_workers, out, lse, room,
    ):  # fmt: skip
        rows, lanes = rows_of(target), lanes_of(q, target)
        tiles, panel_start = list_tiles(segments, tile, rows)
        n_panels = panel_start[-1]
        k_panels, v_panels, nonfinite = cut_panels(room, k, v, n_panels, rows)
        jobs = list_jobs(segments, n_blocks * lanes, q.shape[1] // k.shape[1])
        to_pack, to_run = counters(1), counters(1)
        for _ in prange(n_workers):
            packs = Packs(k_panels, v_panels, nonfinite, n_panels)
            pack_tiles(k, v, segments, tiles, tile, packs, to_pack, target)
        for _ in prange(n_workers):
            packs = Packs(k_panels, v_panels, nonfinite, n_panels)
            rules = Rules(mask, bias, sink, scale, softcap, left, right)
            run_jobs(
                q, v, segments, panel_start, rules, packs, jobs, to_run, tile,
                n_blocks, out, lse, target,
            )  # fmt: skip
        return stamp

    return attend
