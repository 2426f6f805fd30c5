"""Give a compiled kernel its arguments, in the one form it knows (chapters 5, 7, 9).

subtle: one memory order and writable arrays mean one compiled version of a kernel,
and therefore the same bits for every layout that a caller can have.
"""

import numpy as np

from flashlib.chains import longest_tile
from flashlib.problem import Problem

__all__ = ["band_rules", "kernel_arrays", "loop_arguments", "ready"]


def ready(array: np.ndarray) -> np.ndarray:
    """Return a C-ordered, aligned, writable array, a copy if need be."""
    return array if array.flags.carray else np.require(array, requirements="CAW")


def kernel_arrays(
    problem: Problem, q: np.ndarray, k: np.ndarray, v: np.ndarray
) -> tuple[np.ndarray, ...]:
    """Return q, k, v, mask, bias and sink; what is not there has size 0, or -inf."""
    nothing = np.empty((0, 0, 0), problem.work)
    arrays = (
        q,
        k,
        v,
        nothing.astype(bool) if problem.mask is None else problem.mask,
        nothing if problem.bias is None else problem.bias,
        problem.sinks,
    )
    return tuple(ready(array) for array in arrays)


def band_rules(problem: Problem) -> tuple[np.floating, np.floating, int, int]:
    """Return scale, softcap, left and right; a softcap of 0 is none.

    The numbers have the work type: a float of Python would widen a whole kernel.
    """
    number = problem.work.type
    return number(problem.scale), number(problem.softcap or 0), *problem.reach


def loop_arguments(
    problem: Problem, q: np.ndarray, k: np.ndarray, v: np.ndarray, tile: int
) -> tuple:
    """Return what all kernels that walk rows are called with, but for the results.

    A loop takes one chain of additions at once; it walks a longer `tile` in pieces
    of the usual length.
    """
    step = min(tile, longest_tile(problem.seq_k), max(problem.seq_k, 1))
    return (*kernel_arrays(problem, q, k, v), *band_rules(problem), step)
