"""Round what flows through a model, as engines with small numbers do (chapter 13).

A float32 engine disturbs its logits by millionths. One that keeps activations
in bfloat16, or quantizes them to int8 before every product, disturbs them ten
thousand times more; this is where one can watch how many words that changes.
"""

import ml_dtypes
import numpy as np

from flashlib.backends import Backend
from flashlib.errors import ArgumentError
from flashlib.model.operations import Operations

__all__ = ["ROUNDINGS", "RoundedOperations", "round_bfloat16", "round_int8"]


def round_bfloat16(x: np.ndarray) -> np.ndarray:
    """Return every number as its nearest bfloat16.

    Examples
    --------
    >>> round_bfloat16(np.float32([1.001, 1.005]))
    array([1.       , 1.0078125], dtype=float32)
    """
    return x.astype(ml_dtypes.bfloat16).astype(x.dtype)


def round_int8(x: np.ndarray) -> np.ndarray:
    """Return every number as a multiple of 1/127 of the largest of its row.

    Examples
    --------
    >>> round_int8(np.float32([[127.0, 3.4, -0.6]]))
    array([[127.,   3.,  -1.]], dtype=float32)
    """
    step = np.abs(x).max(axis=-1, keepdims=True) / 127
    step = np.where(step == 0, 1, step).astype(x.dtype)
    return np.rint(x / step) * step


ROUNDINGS = {"bfloat16": round_bfloat16, "int8": round_int8}


class RoundedOperations(Operations):
    """Round the left side of every matrix product, and compute on in float32.

    Parameters
    ----------
    rounding : str
        One of `ROUNDINGS`.
    backend, algorithm, tile, num_splits
        As for :class:`Operations`.
    """

    def __init__(
        self,
        rounding: str,
        backend: str | Backend = "auto",
        algorithm: str = "auto",
        *,
        tile: int | None = None,
        num_splits: int | None = None,
    ):
        super().__init__(backend, algorithm, tile=tile, num_splits=num_splits)
        if rounding not in ROUNDINGS:
            raise ArgumentError(
                f"rounding has {rounding!r}; expected one of {', '.join(ROUNDINGS)}; "
                "each names a type that has fewer numbers"
            )
        self._round = ROUNDINGS[rounding]

    def matmul(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return ``round(a) @ b``."""
        return super().matmul(self._round(a), b)
