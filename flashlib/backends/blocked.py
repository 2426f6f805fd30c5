"""Run panels of keys against blocks of query rows, on all cores (chapters 9, 14)."""

import numpy as np

from flashlib.backends.arguments import band_rules, kernel_arrays, ready
from flashlib.backends.base import Backend, Choice
from flashlib.chains import DEFAULT_TILE
from flashlib.kernels.blocked import build_blocked
from flashlib.kernels.decode import build_decode
from flashlib.kernels.launch import launch, workers
from flashlib.kernels.targets import register_tile
from flashlib.output import AttentionOutput
from flashlib.problem import Problem

__all__ = ["BlockedBackend"]

# Keys per tile at most: one chain of additions. A longer tile is walked in such ones.
LONGEST_TILE = DEFAULT_TILE
# Blocks of query rows that share a tile of keys, and jobs that every thread
# should at least find, so that none waits long for the last one.
MOST_BLOCKS = 4
JOBS_PER_WORKER = 3
# To wake a second thread takes longer than it saves for less than so many bytes of
# keys and values, or operations.
WORTH_BYTES = 6 * 10**6
WORTH_FLOPS = 8 * 10**6


class BlockedBackend(Backend):
    """Query tiles times key tiles, in registers: the fastest one here.

    A tile has `LONGEST_TILE` keys at most, in a whole number of panels.
    """

    name = "blocked"

    def refusal(self, problem: Problem, algorithm: str) -> str | None:
        """Refuse to build a score matrix: a tile of it is all that ever exists."""
        if algorithm == "materialized":
            return "it holds one tile of scores per core; use the numpy backend"
        return None

    def preferred(self, problem: Problem) -> Choice:
        """Return the only algorithm of this backend."""
        return Choice(
            "flash",
            f"register tiles of at most {LONGEST_TILE} keys on all cores: the fastest",
        )

    def flash(
        self, problem: Problem, q: np.ndarray, k: np.ndarray, v: np.ndarray, tile: int
    ) -> AttentionOutput:
        """Run one sequence."""
        segments = np.array([[0, problem.seq_q, 0, problem.seq_k]])
        return attend_segments(problem, q, k, v, segments, tile)

    def varlen(
        self,
        problem: Problem,
        q: np.ndarray,
        k: np.ndarray,
        v: np.ndarray,
        segments: np.ndarray,
    ) -> AttentionOutput:
        """Run all segments in one kernel."""
        out, lse = attend_segments(problem, q, k, v, segments, DEFAULT_TILE)
        behind = int(segments[-1, :2].sum()) if len(segments) else 0
        out[behind:], lse[behind:] = 0, -np.inf
        return AttentionOutput(out, lse)

    def decode(
        self,
        problem: Problem,
        q: np.ndarray,
        k_cache: np.ndarray,
        v_cache: np.ndarray,
        cache_seqlens: np.ndarray,
        num_splits: int | None = None,
    ) -> AttentionOutput:
        """Run over pages, one of them per sequence."""
        table = np.arange(len(q)).reshape(-1, 1)
        return self.paged(
            problem, q, k_cache, v_cache, table, cache_seqlens, num_splits
        )

    def paged(
        self,
        problem: Problem,
        q: np.ndarray,
        k_pages: np.ndarray,
        v_pages: np.ndarray,
        block_table: np.ndarray,
        cache_seqlens: np.ndarray,
        num_splits: int | None = None,
    ) -> AttentionOutput:
        """Run over the rows of the pages, where they lie."""
        form = q.shape[:3], problem.head_dim_v, problem.work
        result = AttentionOutput.empty(*form)
        if result.lse.size == 0:
            return result
        k_pages, v_pages = with_whole_rows(k_pages), with_whole_rows(v_pages)
        keys = int(cache_seqlens.sum()) * problem.n_kv_heads
        n_bytes = keys * (q.shape[3] + problem.head_dim_v) * problem.work.itemsize
        n_workers = workers() if n_bytes >= WORTH_BYTES else 1
        launch(
            build_decode,
            ready(q),
            np.array([places(k_pages), places(v_pages)], np.int64),
            ready(block_table),
            k_pages.shape[1],
            ready(cache_seqlens),
            problem.n_kv_heads,
            ready(problem.sinks),
            *band_rules(problem),
            num_splits or 0,
            n_workers,
            *result,
            threads=n_workers,
        )
        return result


def with_whole_rows(pages: np.ndarray) -> np.ndarray:
    """Return pages in which the row of a token is contiguous, a copy if need be."""
    step = pages.strides[-1]
    whole = step == pages.itemsize or pages.shape[-1] < 2
    return pages if whole and pages.flags.aligned else np.array(pages, order="C")


def places(pages: np.ndarray) -> tuple[int, ...]:
    """Return the address of the first row, and the bytes from one to the next."""
    return (pages.__array_interface__["data"][0], *pages.strides[:3])


def attend_segments(
    problem: Problem,
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    segments: np.ndarray,
    tile: int,
) -> AttentionOutput:
    """Run every segment, ``[first query, queries, first key, keys]``, on its own.

    Rows of no segment are left as they are allocated.
    """
    form = (len(q), problem.n_heads), problem.head_dim_v, problem.work
    result = AttentionOutput.empty(*form)
    if result.lse.size == 0 or not segments.size:
        return result
    rows, lanes = register_tile(problem.work)
    longest = int(segments[:, 3].max())
    n_lanes = int(segments[:, 1].sum()) * problem.n_heads
    flops = 2 * n_lanes * longest * (problem.head_dim + problem.head_dim_v)
    n_workers = workers() if flops >= WORTH_FLOPS else 1
    launch(
        build_blocked,
        *kernel_arrays(problem, q, k, v),
        *band_rules(problem),
        segments.astype(np.int64, copy=False),
        -(-min(tile, LONGEST_TILE, max(longest, 1)) // rows) * rows,
        max(1, min(MOST_BLOCKS, n_lanes // (lanes * JOBS_PER_WORKER * n_workers))),
        n_workers,
        *result,
        threads=n_workers,
        room=panel_numbers(problem, segments[:, 3], rows),
    )
    return result


def panel_numbers(problem: Problem, lengths: np.ndarray, rows: int) -> int:
    """Return how many numbers K and V take in panels of `rows`."""
    n_keys = int((-(-lengths // rows)).sum()) * rows
    wide = -(-problem.head_dim_v // rows) * rows
    return problem.n_kv_heads * n_keys * (problem.head_dim + wide)
