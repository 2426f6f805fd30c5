"""Keep the score matrix, and say no to everything else (chapters 9, 12).

All scores of a head exist at once: what that costs is memory, and the passes over
it. Their products are the vendor's, called for small blocks that
:mod:`flashlib.products` adds up in a fixed order, so that no number of threads
changes a bit. This backend is the opponent that the others have to beat.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from flashlib.backends.base import Backend, Choice
from flashlib.cores import usable_cores
from flashlib.output import AttentionOutput
from flashlib.problem import Problem
from flashlib.reference import materialize, materialize_head
from flashlib.validation import check_integer

__all__ = ["BlasBackend"]

# Below so many scores, starting threads takes longer than they save.
WORTH_THREADS = 2**20


class BlasBackend(Backend):
    """Two matrix products per head, with the whole softmax in between.

    Parameters
    ----------
    workers : int, optional
        Heads that run at once, each with a score matrix of its own; as many as
        there are cores unless given. It changes no bit.
    """

    name = "blas"

    def __init__(self, workers: int | None = None):
        if workers is not None:
            workers = check_integer("workers", workers, 1, "heads that run at once")
        self.workers = workers

    def refusal(self, problem: Problem, algorithm: str) -> str | None:
        """Refuse to work in tiles."""
        if algorithm == "flash":
            return "it keeps all scores of a head; use the numpy backend for tiles"
        return None

    def preferred(self, problem: Problem) -> Choice:
        """Return the only algorithm of this backend."""
        size = problem.seq_q * problem.seq_k * problem.work.itemsize / 2**20
        return Choice(
            "materialized", f"matrix products over {size:.3g} MiB of scores per head"
        )

    def materialized(
        self, problem: Problem, q: np.ndarray, k: np.ndarray, v: np.ndarray
    ) -> AttentionOutput:
        """Run heads side by side, where they are large enough."""
        workers = self.workers or usable_cores()
        scores = problem.n_heads * problem.seq_q * problem.seq_k
        if workers == 1 or scores < WORTH_THREADS:
            return materialize(problem, q, k, v)
        rows = problem.seq_q, problem.n_heads
        result = AttentionOutput.empty(rows, problem.head_dim_v, problem.work)
        with ThreadPoolExecutor(workers) as threads:
            heads = [
                threads.submit(materialize_head, problem, h, q, k, v, result)
                for h in range(problem.n_heads)
            ]
        for head in heads:
            head.result()
        return result

    def in_parts(
        self,
        problem: Problem,
        q: np.ndarray,
        k: np.ndarray,
        v: np.ndarray,
        num_splits: int,
    ) -> AttentionOutput:
        """Run all keys at once, whatever `num_splits` says.

        Parts serve kernels that hold a part of the scores; here all scores of a head
        exist, and their softmax has nothing to merge.
        """
        return self.materialized(problem, q, k, v)
