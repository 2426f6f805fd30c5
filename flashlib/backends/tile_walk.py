"""Take rows past a tile of keys, and finish them (chapters 5, 14)."""

import numpy as np

from flashlib.masks import attended
from flashlib.online_softmax import OnlineSoftmax
from flashlib.problem import Problem
from flashlib.scores import block_scores

__all__ = ["finish", "take_tile"]


def take_tile(
    problem: Problem,
    h: int,
    tensors: tuple[np.ndarray, np.ndarray, np.ndarray],
    rows: range,
    keys: range,
    state: OnlineSoftmax,
) -> tuple[OnlineSoftmax, np.ndarray]:
    """Take some rows of head `h` past some keys.

    Parameters
    ----------
    problem : Problem
    h : int
    tensors : tuple of ndarray
        q of these rows; k and v of all keys of the head.
    rows, keys : range
        Where they lie in the problem.
    state : OnlineSoftmax

    Returns
    -------
    OnlineSoftmax
    ndarray of bool
        Which rows attended one of the keys.
    """
    q, k, v = tensors
    some = slice(keys.start, keys.stop)
    with np.errstate(all="ignore"):
        s = block_scores(problem, h, q, k[some], rows, keys)
    visible = attended(problem, h, rows, keys)
    seen = np.ones(len(rows), bool) if visible is None else visible.any(axis=1)
    return state.update(s, v[some], visible), seen


def finish(state: OnlineSoftmax, attends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return out and lse.

    A row that attends keys, all of them with a score of -inf, is 0 / 0.
    """
    out = state.out
    out[attends & (state.l == 0)] = np.nan
    return out, state.lse
