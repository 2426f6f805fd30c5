"""Run a kernel that walks rows, on one core or on all (chapters 7, 9).

Three rungs of the ladder are called alike. Each is a class that names its kernel
and how it runs; what they have in common stands here, and none builds on another.
"""

from collections.abc import Callable
from typing import ClassVar

import numpy as np

from flashlib.backends.arguments import loop_arguments
from flashlib.backends.base import Backend
from flashlib.kernels.launch import launch, launch_alone, workers
from flashlib.output import AttentionOutput
from flashlib.problem import Problem

__all__ = ["RowLoop"]


class RowLoop(Backend):
    """A backend whose kernel holds one tile of scores.

    Attributes
    ----------
    build : callable
        Returns the kernel, see :func:`flashlib.kernels.launch.launch`.
    parallel : bool
        Whether the kernel shares its work out, and takes the number of workers.
    """

    build: ClassVar[Callable]
    parallel: ClassVar[bool]

    def refusal(self, problem: Problem, algorithm: str) -> str | None:
        """Refuse to build a score matrix: these loops have none."""
        if algorithm == "materialized":
            return "its loop holds one tile of scores; use the numpy backend"
        return None

    def flash(
        self, problem: Problem, q: np.ndarray, k: np.ndarray, v: np.ndarray, tile: int
    ) -> AttentionOutput:
        """Run the kernel over C-ordered copies where the input is not."""
        rows = problem.seq_q, problem.n_heads
        result = AttentionOutput.empty(rows, problem.head_dim_v, problem.work)
        if result.lse.size == 0:
            return result
        inputs = loop_arguments(problem, q, k, v, tile)
        if self.parallel:
            launch(self.build, *inputs, workers(), *result)
        else:
            launch_alone(self.build, *inputs, *result)
        return result
