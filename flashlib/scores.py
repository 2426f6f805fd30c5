"""Score one block of one head: scale, cap, bias (chapter 1).

The matrix path asks for the whole matrix of a head as one block, the NumPy
loop for a tile after the other. Both get their scores here, so that they
differ in what they do with a score and not in what a score is.
"""

import numpy as np

from flashlib.masks import block_of
from flashlib.problem import Problem
from flashlib.products import product

__all__ = ["block_scores", "head_copy"]


def block_scores(
    problem: Problem, h: int, q: np.ndarray, k: np.ndarray, rows: range, keys: range
) -> np.ndarray:
    """Return the scores of one block: scaled, capped, biased, not yet masked.

    Parameters
    ----------
    problem : Problem
        Scale, softcap and bias.
    h : int
        Query head.
    q, k : ndarray
        The rows and the keys of the block, C order, ``[len(rows), head_dim]``
        and ``[len(keys), head_dim]``.
    rows, keys : range
        Where the block lies.

    Returns
    -------
    ndarray
        ``[len(rows), len(keys)]``. Cells that nobody attends hold whatever
        their keys and biases hold.
    """
    s = product(q, k.T)
    s *= problem.work.type(problem.scale)
    if problem.softcap is not None:
        cap = problem.work.type(problem.softcap)
        s = cap * np.tanh(s / cap)
    if problem.bias is not None:
        s += block_of(problem.bias, h, rows, keys)
    return s


def head_copy(x: np.ndarray, h: int) -> np.ndarray:
    """Copy one head out, ``[seq, head_dim]`` in C order.

    subtle: BLAS picks its loop by strides, and by whether both operands are
    one buffer. A fresh copy of every head makes the bits of a result
    independent of how the caller's memory lies and of the number of heads.
    """
    return np.array(x[:, h], order="C", copy=True)
