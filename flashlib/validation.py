"""Check single arguments, and say what is wrong with them (book).

Every function here takes one argument as the caller gave it and returns it in
the one form that the rest of the package uses, or raises. None of them reads
the numbers inside q, k and v.
"""

import functools
import math
import operator

import numpy as np

from flashlib.chains import DEFAULT_TILE
from flashlib.errors import ArgumentError, DTypeError, ShapeError, shown

__all__ = [
    "as_array",
    "check_band",
    "check_bias",
    "check_integer",
    "check_mask",
    "check_number",
    "check_sink",
    "check_tensor",
    "check_tile",
    "is_float",
]

_HALF = ("float16", "bfloat16")
_NATIVE = ("float32", "float64")


@functools.cache
def is_float(dtype: np.dtype) -> bool:
    """Whether flashlib computes with `dtype`, natively or after widening."""
    return dtype.name in (*_HALF, *_NATIVE) and dtype.isnative


def as_array(name: str, value: object) -> np.ndarray:
    """Return `value` as an array, or refuse what has no rectangular shape.

    Raises
    ------
    ShapeError
        If rows have different lengths.
    """
    try:
        return np.asarray(value)
    except ValueError:
        raise ShapeError(
            f"{name} has rows of different lengths; expected a rectangular array; an "
            "axis has one length"
        ) from None


def check_tensor(name: str, value: object, axes: tuple[str, ...]) -> np.ndarray:
    """Return q, k or v as an array of the right rank and a float type.

    Raises
    ------
    ShapeError
        If it is not rectangular or not of the rank of `axes`.
    DTypeError
        If it is not of a supported float type.
    """
    array = as_array(name, value)
    if not is_float(array.dtype):
        raise DTypeError(
            f"{name} has dtype {array.dtype}; expected float32, float64, float16 or "
            "bfloat16 in native byte order; convert with astype"
        )
    if array.ndim != len(axes):
        raise ShapeError(
            f"{name} has shape {array.shape}; expected rank {len(axes)}; its axes are "
            f"[{', '.join(axes)}]"
        )
    return array


def check_number(name: str, value: object, work: np.dtype, *, positive: bool) -> float:
    """Return a real number that is finite (and positive) in the type `work`.

    Raises
    ------
    ArgumentError
        If it is no number, or not finite (and positive) in `work`.
    """
    expected = "a finite number > 0" if positive else "a finite number"
    number = _real_number(value)
    with np.errstate(all="ignore"):
        rounded = float(work.type(number))
    if not math.isfinite(rounded) or (positive and not rounded > 0):
        raise ArgumentError(
            f"{name} has {shown(value)}; expected {expected} in {work}; scores are "
            "computed in that type"
        )
    return number


def _real_number(value: object) -> float:
    """Return `value` as a float, NaN for what is not one real number."""
    if isinstance(value, (np.ndarray, np.generic)):
        is_real = value.dtype.kind in "iu" or is_float(value.dtype)
        return float(value) if is_real and value.ndim == 0 else math.nan
    if isinstance(value, (bool, str, bytes, bytearray)):
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def check_integer(name: str, value: object, least: int, why: str) -> int:
    """Return an integer of at least `least`; a bool is not one.

    Raises
    ------
    ArgumentError
        If it is no integer, or less than `least`.
    """
    try:
        number = None if isinstance(value, (bool, np.bool_)) else operator.index(value)
    except (TypeError, ValueError):
        number = None
    if number is None or number < least:
        raise ArgumentError(
            f"{name} has {shown(value)}; expected an integer >= {least}; {why}"
        )
    return number


def check_tile(tile: object) -> int:
    """Return the keys per tile, 64 by default.

    Raises
    ------
    ArgumentError
        If it is no integer of at least 1.
    """
    if tile is None:
        return DEFAULT_TILE
    return check_integer("tile", tile, 1, "a tile holds at least one key")


def check_band(causal: object, window: object) -> tuple[int | None, int | None]:
    """Return the band ``(left, right)`` that `causal` and `window` ask for.

    A row at position p sees keys ``p - left`` to ``p + right``, both included;
    None is no limit on that side.

    Raises
    ------
    ArgumentError
        If `causal` is no bool, or `window` no integer, pair or None.
    """
    if not isinstance(causal, (bool, np.bool_)):
        raise ArgumentError(
            f"causal has {shown(causal)}; expected True or False; later keys are "
            "hidden or they are not"
        )
    left, right = _window_sides(window)
    return (left, 0) if causal else (left, right)


def _window_sides(window: object) -> tuple[int | None, int | None]:
    if window is None:
        return None, None
    if isinstance(window, (tuple, list)):
        if len(window) != 2:
            raise ArgumentError(
                f"window has {shown(window)}; expected (left, right), an integer "
                "or None; a band has two sides"
            )
        why = "a side counts the keys beyond the row's own key; None means no limit"
        sides = zip(("window left", "window right"), window, strict=True)
        left, right = (
            None if side is None else check_integer(name, side, 0, why)
            for name, side in sides
        )
        return left, right
    why = "an integer window counts the row's own key; None means no limit"
    return check_integer("window", window, 1, why) - 1, 0


def check_mask(mask: object, full: tuple[int, int, int]) -> np.ndarray | None:
    """Return a boolean mask of rank 3 whose axes are 1 or those of `full`.

    Raises
    ------
    ShapeError
        If it does not broadcast to `full`.
    DTypeError
        If it is not bool.
    """
    if mask is None:
        return None
    array = as_array("mask", mask)
    if array.dtype != np.bool_:
        raise DTypeError(
            f"mask has dtype {array.dtype}; expected bool, True = attend; "
            "numbers that are added to the scores belong in bias; "
            "for a 0/1 mask pass mask.astype(bool)"
        )
    return _compact("mask", array, full)


def check_bias(
    bias: object, full: tuple[int, int, int], work: np.dtype
) -> np.ndarray | None:
    """Return a bias in the type `work`, of rank 3, axes 1 or those of `full`.

    Raises
    ------
    ShapeError
        If it does not broadcast to `full`.
    DTypeError
        If it is not of a supported float type.
    """
    if bias is None:
        return None
    array = as_array("bias", bias)
    if not is_float(array.dtype):
        raise DTypeError(
            f"bias has dtype {array.dtype}; expected a float type, it is added to "
            "the scores; a bool array that says who attends belongs in mask"
        )
    compact = _compact("bias", array, full)
    limit = np.finfo(work).max
    with np.errstate(all="ignore"):
        narrow = compact.astype(work)
        # subtle: a finite bias must not become -inf on the way to float32,
        # because -inf hides the key and a finite bias, however low, does not.
        lost = np.isinf(narrow) & ~np.isinf(compact)
        return np.where(lost, np.copysign(limit, narrow), narrow)


def check_sink(sink: object, n_heads: int, work: np.dtype) -> np.ndarray | None:
    """Return one extra logit per head in the type `work`, ``-inf`` for none.

    Raises
    ------
    ShapeError
        If it is not one logit per head.
    DTypeError
        If it is not of a supported float type.
    ArgumentError
        If a logit is NaN or +inf, or becomes infinite in `work`.
    """
    if sink is None:
        return None
    array = as_array("sink", sink)
    if not is_float(array.dtype):
        raise DTypeError(
            f"sink has dtype {array.dtype}; expected a float type; a sink is one score "
            "more; convert with astype"
        )
    if array.shape != (n_heads,):
        raise ShapeError(
            f"sink has shape {array.shape}; expected ({n_heads},); there is one logit "
            "per query head"
        )
    with np.errstate(all="ignore"):
        logits = np.ascontiguousarray(array.astype(work))
    bad = np.isnan(logits) | (np.isinf(logits) & (array != -np.inf))
    if bad.any():
        head = int(np.argmax(bad))
        raise ArgumentError(
            f"sink has {array[head]} for head {head}; expected a finite logit in "
            f"{work}; -inf stands for no sink"
        )
    return logits


def _compact(name: str, array: np.ndarray, full: tuple[int, int, int]) -> np.ndarray:
    """Return a rank-3 view of what broadcasts to `full`, stride-0 axes cut to 1."""
    rank3 = array.reshape((1,) * (3 - array.ndim) + array.shape)
    fits = array.ndim <= 3 and all(
        size in (1, want) for size, want in zip(rank3.shape, full, strict=True)
    )
    if not fits:
        raise ShapeError(
            f"{name} has shape {array.shape}; expected one that broadcasts to "
            f"[n_heads, seq_q, seq_k] = {list(full)}; rank 2 is [seq_q, seq_k]"
        )
    repeated = (
        slice(0, 1) if step == 0 and size > 1 else slice(None)
        for step, size in zip(rank3.strides, rank3.shape, strict=True)
    )
    return rank3[tuple(repeated)]
