"""Name the element types of the machine and round to them on write (chapter 15).

Engines read any type as float32, compute in float32 and round once, when the
result is written. ``float8_e4m3`` is the format whose largest number is 240.
"""

import ml_dtypes
import numpy as np

from flashlib.errors import DTypeError

__all__ = [
    "BFLOAT16",
    "FLOAT16",
    "FLOAT32",
    "FLOAT32_MIN",
    "FLOAT8",
    "FLOATS",
    "INT32",
    "INTEGERS",
    "SUPPORTED",
    "UINT16",
    "UINT32",
    "UINT8",
    "as_dtype",
    "as_float32",
    "is_float",
    "poison",
    "rounded",
]

FLOAT32 = np.dtype(np.float32)
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
FLOAT16 = np.dtype(np.float16)
FLOAT8 = np.dtype(ml_dtypes.float8_e4m3)
FLOATS = (FLOAT32, BFLOAT16, FLOAT16, FLOAT8)
INT32 = np.dtype(np.int32)
UINT32 = np.dtype(np.uint32)
UINT16 = np.dtype(np.uint16)
UINT8 = np.dtype(np.uint8)
INTEGERS = (INT32, UINT32, UINT16, UINT8)
SUPPORTED = FLOATS + INTEGERS

#: The lowest float32, for fills and clamps that must stay finite.
FLOAT32_MIN = float(np.finfo(np.float32).min)
#: Fill of unwritten integers, which have no NaN.
_INTEGER_POISON = {t: np.iinfo(t).max for t in INTEGERS}
_BY_NAME = {t.name: t for t in SUPPORTED}
_FLOAT_SET = frozenset(FLOATS)


def as_dtype(dtype: object) -> np.dtype:
    """Return the supported NumPy dtype that ``dtype`` names.

    Parameters
    ----------
    dtype : numpy dtype, scalar type or name such as ``"bfloat16"``

    Raises
    ------
    DTypeError
        When the machine has no such element type.

    Examples
    --------
    >>> as_dtype("float8_e4m3").itemsize
    1
    """
    found = _BY_NAME.get(dtype) if isinstance(dtype, str) else None
    if found is None:
        try:
            found = np.dtype(dtype).newbyteorder("=")
        except TypeError:
            found = None
    if found not in SUPPORTED:
        raise DTypeError(
            f"dtype has {getattr(found, 'name', dtype)}; expected one of "
            f"{', '.join(_BY_NAME)}; the machine has no other element types; convert "
            "the array first, for example with .astype(np.float32)"
        )
    return found


def is_float(dtype: np.dtype) -> bool:
    """Tell whether ``dtype`` is one of the four floating formats."""
    return dtype in _FLOAT_SET


def poison(dtype: np.dtype) -> object:
    """Return what fresh memory holds: NaN, or the largest integer."""
    return np.nan if dtype in _FLOAT_SET else _INTEGER_POISON[dtype]


def as_float32(values: np.ndarray) -> np.ndarray:
    """Widen to float32, as every engine does when it reads."""
    return values if values.dtype == np.float32 else values.astype(np.float32)


def rounded(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Round values to ``dtype`` as a write does.

    To a float: nearest, ties to even. From a float to an integer: half to even,
    then saturated; NaN becomes 0 (the guides do not say, so that part is ours).
    Between integers of one width the bits are kept.

    Examples
    --------
    >>> rounded(np.float32([0.5, 1.5, 300.0, -7.0]), np.dtype(np.uint8))
    array([  0,   2, 255,   0], dtype=uint8)
    """
    if values.dtype == dtype:
        return values
    if dtype in _FLOAT_SET:
        return values.astype(dtype)
    if values.dtype.kind in "iu":
        wide = values.astype(np.int64)
        if values.dtype.itemsize >= dtype.itemsize == 4:
            return wide.astype(dtype)
    else:
        wide = np.rint(np.nan_to_num(values.astype(np.float64), nan=0.0))
    info = np.iinfo(dtype)
    return np.clip(wide, info.min, info.max).astype(dtype)
