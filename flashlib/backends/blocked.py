"""Run panels of keys against blocks of query rows, on all cores (chapter 9)."""

import numpy as np

from flashlib.backends.base import Backend, Choice
from flashlib.backends.scalar import kernel_arrays
from flashlib.kernels.blocked import build_blocked
from flashlib.kernels.launch import launch, panel_rows, workers
from flashlib.online_softmax import AttentionOutput
from flashlib.problem import Problem

__all__ = ["BlockedBackend"]

# Blocks of query rows that share a tile of keys, and jobs that every thread
# should at least find, so that none waits long for the last one.
MOST_BLOCKS = 4
JOBS_PER_WORKER = 3


class BlockedBackend(Backend):
    """Query tiles times key tiles, in registers: the fastest one here."""

    name = "blocked"

    def refusal(self, problem: Problem, algorithm: str) -> str | None:
        """Refuse to build a score matrix: a tile of it is all that ever exists."""
        if algorithm == "materialized":
            return "it holds one tile of scores per core; use the numpy backend"
        return None

    def preferred(self, problem: Problem) -> Choice:
        """Return the only algorithm of this backend."""
        return Choice("flash", "register tiles on all cores: fastest on a processor")

    def flash(
        self, problem: Problem, q: np.ndarray, k: np.ndarray, v: np.ndarray, tile: int
    ) -> AttentionOutput:
        """Run one sequence."""
        segments = np.array([[0, problem.seq_q, 0, problem.seq_k]])
        return attend_segments(problem, q, k, v, segments, tile)


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
    out = np.empty((len(q), problem.n_heads, problem.head_dim_v), problem.work)
    lse = np.empty(out.shape[:2], problem.work)
    if lse.size == 0 or not segments.size:
        return AttentionOutput(out, lse)
    rows, n_workers = panel_rows(), workers()
    longest = int(segments[:, 3].max())
    n_lanes = int(segments[:, 1].sum()) * problem.n_heads
    launch(
        build_blocked,
        *kernel_arrays(problem, q, k, v),
        problem.work.type(problem.scale),
        problem.work.type(problem.softcap or 0),
        *problem.reach,
        segments.astype(np.int64, copy=False),
        -(-min(tile, max(longest, 1)) // rows) * rows,
        max(1, min(MOST_BLOCKS, n_lanes // (24 * JOBS_PER_WORKER * n_workers))),
        n_workers,
        out,
        lse,
    )
    return AttentionOutput(out, lse)
