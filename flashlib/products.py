"""Multiply matrices so that no number of threads changes a bit (chapter 1).

A library that shares a product out between threads cuts it at places that
depend on their number, and at every cut other instructions may add in another
order. It leaves small products to one thread. So a product is cut into small
ones here, always at the same places, and the library never has a choice.

The cuts are good for something else. A sum of `DEPTH` products starts at
zero, and is then added to what is there: errors of rounding do not pile up in
one chain as long as the row.
"""

import numpy as np

__all__ = ["product"]

# OpenBLAS starts threads above 64**3 multiplications, or 9,216 for one row.
ROWS, DEPTH, COLUMNS = 32, 128, 64


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return ``a @ b`` in one type of float.

    Parameters
    ----------
    a, b : ndarray
        ``[n, depth]`` and ``[depth, width]``.

    Returns
    -------
    ndarray
        ``[n, width]``; zeros if `depth` is 0.

    Examples
    --------
    >>> product(np.ones((2, 100)), np.ones((100, 1))).ravel()
    array([100., 100.])
    """
    total = np.empty((len(a), b.shape[1]), np.result_type(a, b))
    whole = len(a) // ROWS * ROWS
    blocks = total[:whole].reshape(whole // ROWS, ROWS, b.shape[1])
    for c in range(0, b.shape[1], COLUMNS):
        some = slice(c, c + COLUMNS)
        if whole:
            stack = a[:whole].reshape(blocks.shape[0], ROWS, a.shape[1])
            _add_up(stack, b[:, some], blocks[..., some])
        if whole < len(a):
            _add_up(a[whole:], b[:, some], total[whole:, some])
    return total


def _add_up(a: np.ndarray, b: np.ndarray, total: np.ndarray) -> None:
    """Write ``a @ b`` into `total`, `DEPTH` products at a time."""
    np.matmul(a[..., :DEPTH], b[:DEPTH], out=total)
    for d in range(DEPTH, len(b), DEPTH):
        total += a[..., d : d + DEPTH] @ b[d : d + DEPTH]
