"""Run heads side by side, each as on one core (chapters 7, 9)."""

from flashlib.backends.base import Choice
from flashlib.backends.row_loop import RowLoop
from flashlib.kernels.pool import build_pool
from flashlib.problem import Problem

__all__ = ["PoolBackend"]


class PoolBackend(RowLoop):
    """Heads in parallel: every head writes a stripe of its own."""

    name = "pool"
    build = staticmethod(build_pool)
    parallel = True

    def preferred(self, problem: Problem) -> Choice:
        """Return the only algorithm of this backend."""
        return Choice("flash", f"{problem.n_heads} heads, each on the next free core")
