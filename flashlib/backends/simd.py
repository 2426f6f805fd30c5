"""Run the loop of the text, shaped for vectors, on one core (chapters 7, 9)."""

from flashlib.backends.base import Choice
from flashlib.backends.row_loop import RowLoop
from flashlib.kernels.simd import build_simd
from flashlib.problem import Problem

__all__ = ["SimdBackend"]


class SimdBackend(RowLoop):
    """Independent sums in the dot product, one row of values at a time."""

    name = "simd"
    build = staticmethod(build_simd)
    parallel = False

    def preferred(self, problem: Problem) -> Choice:
        """Return the only algorithm of this backend."""
        return Choice("flash", "one core, four independent sums per dot product")
