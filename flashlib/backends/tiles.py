"""Run tiles of query rows against tiles of keys, in plain loops (chapter 9).

The rung between `pool` and `blocked`. It has no name in `get_backend`; an
instance is a backend like any other: ``flash_attention(..., backend=TilesBackend())``.
"""

import numpy as np

from flashlib.backends.base import Choice
from flashlib.backends.row_loop import RowLoop
from flashlib.kernels.lane_product import LANES
from flashlib.kernels.tiles import build_tiles
from flashlib.output import AttentionOutput
from flashlib.problem import Problem

__all__ = ["TilesBackend"]


class TilesBackend(RowLoop):
    """Query rows as lanes: scores transposed, every key read once per tile."""

    name = "tiles"
    build = staticmethod(build_tiles)
    parallel = True

    def preferred(self, problem: Problem) -> Choice:
        """Return the only algorithm of this backend."""
        return Choice("flash", f"tiles of {LANES} query rows, each on the next core")

    def flash(
        self, problem: Problem, q: np.ndarray, k: np.ndarray, v: np.ndarray, tile: int
    ) -> AttentionOutput:
        """Run tile after tile of query rows."""
        out, lse = super().flash(problem, q, k, v, tile)
        # subtle: a sum of values too small to represent is +0 or -0, and 0 times a
        # hidden value may decide which. Adding +0 makes both +0.
        return AttentionOutput(np.add(out, 0, out=out), lse)
