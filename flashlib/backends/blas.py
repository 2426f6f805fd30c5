"""Keep the score matrix, and say no to everything else (chapters 9, 12).

A matrix product of the vendor runs at the peak of the machine, but only on
whole matrices: the scores have to exist. What that costs is memory, and the
passes over it. This backend is the opponent that the others have to beat.
"""

import numpy as np

from flashlib.backends.base import Backend, Choice
from flashlib.output import AttentionOutput
from flashlib.problem import Problem
from flashlib.reference import materialize

__all__ = ["BlasBackend"]


class BlasBackend(Backend):
    """Two matrix products per head, with the whole softmax in between."""

    name = "blas"

    def refusal(self, problem: Problem, algorithm: str) -> str | None:
        """Refuse to work in tiles."""
        if algorithm == "flash":
            return "matrix hardware wants whole matrices; use the numpy backend"
        return None

    def preferred(self, problem: Problem) -> Choice:
        """Return the only algorithm of this backend."""
        size = problem.seq_q * problem.seq_k * problem.work.itemsize / 2**20
        return Choice(
            "materialized", f"matrix products over {size:.3g} MiB of scores per head"
        )

    def flash(
        self, problem: Problem, q: np.ndarray, k: np.ndarray, v: np.ndarray, tile: int
    ) -> AttentionOutput:
        """Run materialized all the same: decode and packed rows arrive here."""
        return materialize(problem, q, k, v)

    def in_parts(
        self,
        problem: Problem,
        q: np.ndarray,
        k: np.ndarray,
        v: np.ndarray,
        num_splits: int,
    ) -> AttentionOutput:
        """Run in one part: a matrix product shares out its own work."""
        return materialize(problem, q, k, v)
