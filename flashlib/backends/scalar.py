"""Run the reference loop, compiled, on one core (chapter 5)."""

import numpy as np

from flashlib.backends.arguments import loop_arguments
from flashlib.backends.base import Backend, Choice
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
        rows = problem.seq_q, problem.n_heads
        result = AttentionOutput.empty(rows, problem.head_dim_v, problem.work)
        if result.lse.size:
            with np.errstate(all="ignore"):
                flash_rows(*loop_arguments(problem, q, k, v, tile), *result)
        return result
