"""How wrong an implementation may be (chapter 8)."""

import numpy as np

__all__ = ["lse_allowed", "out_allowed"]

LSE_ABSOLUTE = 4e-6
LSE_RELATIVE = 1e-6


def out_allowed(plain: float, one: float) -> float:
    """Return how far out may be off: ``2 * plain + one``.

    Parameters
    ----------
    plain : float
        Largest error of the plain implementation in the same type.
    one : float
        The unit of the call, see :func:`~flashlib.testing.exact.unit`.
    """
    return 2 * plain + one


def lse_allowed(want: np.ndarray, plain: float) -> np.ndarray:
    """Return how far every lse may be off.

    4e-6 absolute and 1e-6 relative, or twice the error of the plain lse where
    hot scores leave no implementation within that.

    Parameters
    ----------
    want : ndarray
        The right lse, ``[seq_q, n_heads]``.
    plain : float
        Largest error of the plain lse in the same type.

    Returns
    -------
    ndarray
        ``[seq_q, n_heads]``.

    Examples
    --------
    >>> lse_allowed(np.array([0.0, 6.0]), plain=3e-6)
    array([6.e-06, 1.e-05])
    """
    return np.maximum(LSE_ABSOLUTE + LSE_RELATIVE * np.abs(want), 2 * plain)
