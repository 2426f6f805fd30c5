"""Let every backend answer every call, and say no with a reason (chapter 5).

A backend is a class whose every method works. This base class is itself the
NumPy backend; subclasses override what they do better. `choose` is the gate: it
turns "auto" into an algorithm and a reason, and refuses an explicit algorithm that
the backend does not run.

Tensors arrive validated and in the work type of the problem, float32 or
float64, in any memory order; results leave in the work type.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from flashlib.backends.numpy_tiles import attend_in_tiles
from flashlib.backends.splits import attend_in_parts
from flashlib.chains import DEFAULT_TILE, shortest_tile
from flashlib.errors import ArgumentError, Refused, shown
from flashlib.output import AttentionOutput
from flashlib.problem import Problem
from flashlib.reference import materialize

__all__ = ["ALGORITHMS", "Backend", "Choice"]

ALGORITHMS = ("auto", "flash", "materialized")


class Choice(NamedTuple):
    """An algorithm, and why it was chosen."""

    algorithm: str
    reason: str


class Backend:
    """The NumPy backend, and the defaults of every other one."""

    name = "numpy"

    def refusal(self, problem: Problem, algorithm: str) -> str | None:
        """Return why this backend does not run `algorithm`, or None if it does."""
        return None

    def preferred(self, problem: Problem) -> Choice:
        """Return what "auto" means here."""
        return Choice("flash", "tiles of keys: the score matrix is never held")

    def choose(self, problem: Problem, algorithm: str = "auto") -> Choice:
        """Turn a request into an algorithm and a reason.

        Raises
        ------
        ArgumentError
            If the name is not known.
        Refused
            If the backend does not run the explicit algorithm; never a silent
            fallback.
        """
        if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
            raise ArgumentError(
                f"algorithm has {shown(algorithm)}; expected one of "
                f"{', '.join(ALGORITHMS)}; 'auto' leaves it to the backend"
            )
        if algorithm == "auto":
            return self.preferred(problem)
        reason = self.refusal(problem, algorithm)
        if reason is not None:
            raise Refused(
                f"algorithm has {shown(algorithm)}; expected one that the "
                f"{self.name} backend runs; {reason}"
            )
        return Choice(algorithm, "asked for")

    def prefill(
        self,
        problem: Problem,
        q: np.ndarray,
        k: np.ndarray,
        v: np.ndarray,
        *,
        algorithm: str,
        tile: int = DEFAULT_TILE,
    ) -> AttentionOutput:
        """Run attention of `seq_q` rows; `algorithm` is one that `choose` gave.

        A `tile` below ``shortest_tile`` of :mod:`flashlib.chains` is made longer: the
        rounding errors of so many additions would show.
        """
        if algorithm == "materialized":
            return self.materialized(problem, q, k, v)
        return self.flash(problem, q, k, v, max(tile, shortest_tile(problem.seq_k)))

    def materialized(
        self, problem: Problem, q: np.ndarray, k: np.ndarray, v: np.ndarray
    ) -> AttentionOutput:
        """Run with the whole score matrix of a head at a time."""
        return materialize(problem, q, k, v)

    def flash(
        self, problem: Problem, q: np.ndarray, k: np.ndarray, v: np.ndarray, tile: int
    ) -> AttentionOutput:
        """Run online softmax over tiles of `tile` keys, one block of rows a time."""
        return attend_in_tiles(problem, q, k, v, tile)

    def decode(
        self,
        problem: Problem,
        q: np.ndarray,
        k_cache: np.ndarray,
        v_cache: np.ndarray,
        cache_seqlens: np.ndarray,
        num_splits: int | None = None,
    ) -> AttentionOutput:
        """Run the newest `seq_q` tokens of every sequence over its live keys.

        Parameters
        ----------
        problem : Problem
            Of one sequence: `seq_q` new tokens over `seq_k` = capacity keys.
        q : ndarray
            ``[batch, seq_q, n_heads, head_dim]``.
        k_cache : ndarray
            ``[batch, seq_k, n_kv_heads, head_dim]``.
        v_cache : ndarray
            ``[batch, seq_k, n_kv_heads, head_dim_v]``.
        cache_seqlens : ndarray of int
            Live keys per sequence, ``[batch]``; later slots are not read.
        num_splits : int, optional
            Cut the keys into as many parts; default: the backend decides, and runs
            the algorithm that its gate prefers.
        """
        result = _empty(problem, len(q))
        for b, length in enumerate(map(int, cache_seqlens)):
            k, v = k_cache[b, :length], v_cache[b, :length]
            self._one_sequence(problem, q, k, v, b, num_splits, result)
        return result

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
        """Run `decode` over pages; here they are first put together.

        Parameters
        ----------
        problem, q, cache_seqlens, num_splits
            As in :meth:`decode`.
        k_pages : ndarray
            ``[num_blocks, block_len, n_kv_heads, head_dim]``.
        v_pages : ndarray
            ``[num_blocks, block_len, n_kv_heads, head_dim_v]``.
        block_table : ndarray of int
            ``[batch, max_blocks]``, page numbers in the order of the tokens.
        """
        result = _empty(problem, len(q))
        for b, length in enumerate(map(int, cache_seqlens)):
            pages = block_table[b, : -(-length // k_pages.shape[1])]
            k, v = (
                x[pages].reshape(len(pages) * x.shape[1], *x.shape[2:])[:length]
                for x in (k_pages, v_pages)
            )
            self._one_sequence(problem, q, k, v, b, num_splits, result)
        return result

    def varlen(
        self,
        problem: Problem,
        q: np.ndarray,
        k: np.ndarray,
        v: np.ndarray,
        segments: np.ndarray,
    ) -> AttentionOutput:
        """Run every segment of packed rows as the gate prefers; other rows are empty.

        Parameters
        ----------
        problem : Problem
            Of all rows together.
        q, k, v : ndarray
            ``[total_q, n_heads, head_dim]`` and so on.
        segments : ndarray of int
            ``[n, 4]``: first query, queries, first key, keys.
        """
        shape = (problem.seq_q, problem.n_heads)
        out = np.zeros((*shape, problem.head_dim_v), problem.work)
        lse = np.full(shape, -np.inf, problem.work)
        for q_start, seq_q, k_start, seq_k in segments.tolist():
            rows, keys = (
                slice(q_start, q_start + seq_q),
                slice(k_start, k_start + seq_k),
            )
            own = replace(problem, seq_q=seq_q, seq_k=seq_k)
            algorithm = self.preferred(own).algorithm
            out[rows], lse[rows] = self.prefill(
                own, q[rows], k[keys], v[keys], algorithm=algorithm
            )
        return AttentionOutput(out, lse)

    def in_parts(
        self,
        problem: Problem,
        q: np.ndarray,
        k: np.ndarray,
        v: np.ndarray,
        num_splits: int,
    ) -> AttentionOutput:
        """Run one sequence, its keys in `num_splits` parts."""
        return attend_in_parts(problem, q, k, v, num_splits, DEFAULT_TILE)

    def _one_sequence(
        self,
        problem: Problem,
        q: np.ndarray,
        k: np.ndarray,
        v: np.ndarray,
        b: int,
        num_splits: int | None,
        result: AttentionOutput,
    ) -> None:
        live = problem.over_keys(len(k))
        if num_splits is None:
            algorithm = self.preferred(live).algorithm
            result.out[b], result.lse[b] = self.prefill(
                live, q[b], k, v, algorithm=algorithm
            )
        else:
            result.out[b], result.lse[b] = self.in_parts(live, q[b], k, v, num_splits)


def _empty(problem: Problem, batch: int) -> AttentionOutput:
    """Return room for the rows of `batch` sequences."""
    rows = (batch, problem.seq_q, problem.n_heads)
    return AttentionOutput.empty(rows, problem.head_dim_v, problem.work)
