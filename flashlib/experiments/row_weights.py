"""Weigh the scores of a row: by definition, and against an anchor (chapters 1, 3)."""

import numpy as np


def weights_of(scores: object) -> np.ndarray:
    """Return the weights of a row straight from their definition, in float64.

    Examples
    --------
    >>> weights_of([0.0, 0.0])
    array([0.5, 0.5])
    """
    terms = np.exp(np.asarray(scores, dtype=np.float64))
    return terms / terms.sum()


def shifted_softmax(scores: object, anchor: float) -> np.ndarray:
    """Return softmax as float32 computes it against any anchor.

    Parameters
    ----------
    scores : array_like
        One row of scores; taken as float32.
    anchor : float
        The value that is subtracted from each score before exp.

    Returns
    -------
    np.ndarray
        Weights, float32; NaN where float32 could not hold the terms.

    Examples
    --------
    >>> shifted_softmax([0.0, 0.0], anchor=0.0)
    array([0.5, 0.5], dtype=float32)
    >>> shifted_softmax([0.0, 0.0], anchor=104.0)
    array([nan, nan], dtype=float32)
    """
    row = np.asarray(scores, dtype=np.float32)
    with np.errstate(all="ignore"):
        p = np.exp(row - np.float32(anchor))
        return p / p.sum()


def exact_softmax(scores: object) -> np.ndarray:
    """Return softmax of the same float32 scores, computed in float64 at the max."""
    row = np.asarray(scores, dtype=np.float32).astype(np.float64)
    p = np.exp(row - row.max())
    return p / p.sum()


def weight_error(scores: object, anchor: float) -> float:
    """Return the largest error of a weight as a share of the largest weight."""
    exact = exact_softmax(scores)
    error = np.abs(shifted_softmax(scores, anchor) - exact).max()
    return float(error / exact.max())


def moved_softmax(
    first: np.ndarray, second: np.ndarray, r1: float, r2: float
) -> np.ndarray:
    """Return softmax of two halves whose anchor moves from `r1` to `r2`.

    Parameters
    ----------
    first, second : np.ndarray
        The scores of the halves, float32.
    r1, r2 : float
        What is subtracted from the first half, and from the second.

    Returns
    -------
    np.ndarray
        Weights of the whole row, float32.

    Examples
    --------
    >>> moved_softmax(np.float32([0.0]), np.float32([0.0]), 0.0, 0.0)
    array([0.5, 0.5], dtype=float32)
    """
    with np.errstate(all="ignore"):
        p1, p2 = np.exp(first - np.float32(r1)), np.exp(second - np.float32(r2))
        corr = np.exp(np.float32(r1) - np.float32(r2))
        return np.concatenate([p1 * corr, p2]) / (p1.sum() * corr + p2.sum())
