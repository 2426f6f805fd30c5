"""Check lengths, page numbers and bounds: arrays of integers (chapters 9, 14)."""

import numpy as np

from flashlib.errors import DTypeError, ShapeError
from flashlib.validation import as_array

__all__ = ["check_integers"]


def check_integers(name: str, value: object, axes: tuple[str, ...]) -> np.ndarray:
    """Return an array of any integer type, of the rank of `axes`.

    Raises
    ------
    ShapeError
        If it is not rectangular or not of the rank of `axes`.
    DTypeError
        If it holds anything but integers.

    Examples
    --------
    >>> check_integers("cache_seqlens", [3, 5], ("batch",))
    array([3, 5])
    """
    array = as_array(name, value)
    if array.size == 0 and array.dtype.kind == "f":
        array = array.astype(np.int64)  # an empty list has no better type
    if array.dtype.kind not in "iu":
        raise DTypeError(
            f"{name} has dtype {array.dtype}; expected integers; its entries count "
            "tokens or number pages"
        )
    if array.ndim != len(axes):
        raise ShapeError(
            f"{name} has shape {array.shape}; expected rank {len(axes)}; its axes are "
            f"[{', '.join(axes)}]"
        )
    return array
