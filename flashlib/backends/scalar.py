"""Run the reference loop, compiled, on one core (chapter 5)."""

import numpy as np

from flashlib.backends.base import Backend, Choice
from flashlib.chains import longest_tile
from flashlib.kernels.scalar import flash_rows
from flashlib.output import AttentionOutput
from flashlib.problem import Problem

__all__ = ["ScalarBackend"]


class ScalarBackend(Backend):
    """The loop of the text: a row at a time, a tile of keys at a time."""

    name = "scalar"

    def refusal(self, problem: Problem, algorithm: str) -> str | None:
        """Refuse to build a score matrix: this loop has none."""
        if algorithm == "materialized":
            return "its loop holds one tile of scores; use the numpy backend"
        return None

    def preferred(self, problem: Problem) -> Choice:
        """Return the only algorithm of this backend."""
        return Choice("flash", "one compiled loop: a tile of scores, a row of values")

    def flash(
        self, problem: Problem, q: np.ndarray, k: np.ndarray, v: np.ndarray, tile: int
    ) -> AttentionOutput:
        """Run the compiled loop over C-ordered copies where the input is not."""
        work, rows = problem.work, (problem.seq_q, problem.n_heads)
        result = AttentionOutput.empty(rows, problem.head_dim_v, work)
        if result.lse.size == 0:
            return result
        with np.errstate(all="ignore"):
            flash_rows(
                *kernel_arrays(problem, q, k, v),
                work.type(problem.scale),
                work.type(problem.softcap or 0),
                *problem.reach,
                step(tile, problem),
                *result,
            )
        return result


def step(tile: int, problem: Problem) -> int:
    """Return how many keys a compiled loop takes at once: one chain of additions.

    A longer tile is walked in pieces of the usual length.
    """
    return min(tile, longest_tile(problem.seq_k), max(problem.seq_k, 1))


def kernel_arrays(
    problem: Problem, q: np.ndarray, k: np.ndarray, v: np.ndarray
) -> tuple[np.ndarray, ...]:
    """Return q, k, v, mask, bias and sink in the one form that kernels know.

    subtle: one memory order and writable arrays mean one compiled version,
    and therefore the same bits for every layout that a caller can have.
    """
    nothing = np.empty((0, 0, 0), problem.work)
    arrays = (
        q,
        k,
        v,
        nothing.astype(bool) if problem.mask is None else problem.mask,
        nothing if problem.bias is None else problem.bias,
        problem.sinks,
    )
    return tuple(np.require(array, requirements="CAW") for array in arrays)
