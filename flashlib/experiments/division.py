"""Divide the weights first or the sum last, and imitate one in the other (chapter 13).

All sums here run from the first key to the last, one addition after the other, so
that two functions which do the same additions return the same bits.
"""

from collections.abc import Callable, Iterator

import numpy as np

__all__ = ["add_up", "divide_first", "divide_last", "three_walks"]

Scores = Callable[[int, int], np.ndarray]


def add_up(x: np.ndarray, start: np.ndarray | float = 0.0) -> np.ndarray:
    """Add the rows of `x` to `start`, one after the other.

    Examples
    --------
    >>> float(add_up(np.float32([1e8, 1, -1e8])))
    0.0
    """
    first = np.broadcast_to(np.asarray(start, x.dtype), x.shape[1:])
    return np.add.accumulate(np.concatenate([first[None], x]))[-1]


def divide_first(s: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Make weights of a whole row, and add up the weighted values.

    Parameters
    ----------
    s : ndarray
        Scores, ``[seq_k]``.
    v : ndarray
        ``[seq_k, head_dim_v]``.

    Returns
    -------
    ndarray
        ``[head_dim_v]``.
    """
    p = np.exp(s - s.max())
    weights = p / add_up(p)
    return add_up(weights[:, None] * v)


def divide_last(s: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Add up unfinished weights times values, and divide the sum."""
    p = np.exp(s - s.max())
    return add_up(p[:, None] * v) / add_up(p)


def three_walks(scores: Scores, v: np.ndarray, tile: int) -> np.ndarray:
    """Return the bits of `divide_first`, never holding more than one tile.

    Parameters
    ----------
    scores : callable
        ``scores(start, stop)`` computes some scores of the row, ``[stop - start]``.
    v : ndarray
        ``[seq_k, head_dim_v]``.
    tile : int

    Examples
    --------
    >>> s, v = np.float32([1, 3, 2, 5, 4, 0]), np.eye(6, dtype=np.float32)
    >>> streamed = three_walks(lambda start, stop: s[start:stop], v, tile=2)
    >>> np.array_equal(streamed, divide_first(s, v))
    True
    """
    m = max(scores(*part).max() for part in _parts(len(v), tile))
    l = v.dtype.type(0)
    for part in _parts(len(v), tile):
        l = add_up(np.exp(scores(*part) - m), l)
    out = np.zeros(v.shape[1:], v.dtype)
    for start, stop in _parts(len(v), tile):
        weights = np.exp(scores(start, stop) - m) / l
        out = add_up(weights[:, None] * v[start:stop], out)
    return out


def _parts(length: int, tile: int) -> Iterator[tuple[int, int]]:
    """Yield where each tile starts and stops."""
    for start in range(0, length, tile):
        yield start, min(start + tile, length)
