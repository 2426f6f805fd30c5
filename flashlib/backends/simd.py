"""Run the loop of the text, shaped for vectors, on one core (chapters 7, 9)."""

import numpy as np

from flashlib.backends.base import Choice
from flashlib.backends.scalar import ScalarBackend, kernel_arrays, step
from flashlib.kernels.launch import launch_alone
from flashlib.kernels.simd import build_simd
from flashlib.output import AttentionOutput
from flashlib.problem import Problem

__all__ = ["SimdBackend"]


class SimdBackend(ScalarBackend):
    """Independent sums in the dot product, one row of values at a time."""

    name = "simd"

    def preferred(self, problem: Problem) -> Choice:
        """Return the only algorithm of this backend."""
        return Choice("flash", "one core, four independent sums per dot product")

    def flash(
        self, problem: Problem, q: np.ndarray, k: np.ndarray, v: np.ndarray, tile: int
    ) -> AttentionOutput:
        """Run head after head."""
        rows = problem.seq_q, problem.n_heads
        result = AttentionOutput.empty(rows, problem.head_dim_v, q.dtype)
        if result.lse.size:
            self._run(*loop_arguments(problem, q, k, v, tile), *result)
        return result

    def _run(self, *arguments) -> None:
        launch_alone(build_simd, *arguments)


def loop_arguments(
    problem: Problem, q: np.ndarray, k: np.ndarray, v: np.ndarray, tile: int
) -> tuple:
    """Return what all kernels that walk rows are called with, but for the results."""
    return (
        *kernel_arrays(problem, q, k, v),
        problem.work.type(problem.scale),
        problem.work.type(problem.softcap or 0),
        *problem.reach,
        step(tile, problem),
    )
