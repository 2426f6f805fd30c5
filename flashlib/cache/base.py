"""Check what goes into a cache, before a byte of it changes (chapter 14).

All caches share one protocol: ``append(k, v)`` adds the newest tokens of every
row, `k`, `v` and `seqlens` are what attention reads, `capacity` is how many
tokens fit. What is refused leaves the cache as it was, byte for byte.
"""

import math

import numpy as np

from flashlib.errors import CapacityError, DTypeError, ShapeError, shown
from flashlib.validation import as_array, check_integer, is_float

__all__ = ["Cache"]


class Cache:
    """Sizes and checks that all caches share."""

    def __init__(
        self,
        batch: int,
        n_kv_heads: int,
        head_dim: int,
        head_dim_v: int | None,
        dtype: np.typing.DTypeLike,
    ):
        self._rows = check_integer("batch", batch, 0, "rows of the cache")
        why = "a cache of nothing stores nothing"
        self.n_kv_heads = check_integer("n_kv_heads", n_kv_heads, 1, why)
        self.head_dim = check_integer("head_dim", head_dim, 1, why)
        wide = head_dim if head_dim_v is None else head_dim_v
        self.head_dim_v = check_integer("head_dim_v", wide, 1, why)
        self.dtype = _float_type(dtype)
        self._seqlens = np.zeros(self._rows, np.int64)

    @property
    def batch(self) -> int:
        """Number of rows; `append` takes this many."""
        return self._rows

    @property
    def seqlens(self) -> np.ndarray:
        """Tokens seen by every row, int64 ``[batch]``, a copy."""
        return self._seqlens.copy()

    def _allocate(self, *sizes: int) -> tuple[np.ndarray, np.ndarray]:
        """Return zeroed memory for keys and for values."""
        shape = (*sizes, self.n_kv_heads)
        try:
            return (
                np.zeros((*shape, self.head_dim), self.dtype),
                np.zeros((*shape, self.head_dim_v), self.dtype),
            )
        except (MemoryError, ValueError):
            width = (self.head_dim + self.head_dim_v) * self.dtype.itemsize
            raise CapacityError(
                f"cache has sizes {shape}; expected memory for them; keys and values "
                f"take {math.prod(shape) * width:.3g} bytes"
            ) from None

    def _checked(self, k: object, v: object) -> tuple[np.ndarray, np.ndarray]:
        """Return the new keys and values as arrays that fit, or raise."""
        widths = (("k", k, self.head_dim), ("v", v, self.head_dim_v))
        arrays = []
        for name, value, width in widths:
            array = as_array(name, value)
            if array.dtype != self.dtype:
                raise DTypeError(
                    f"{name} has dtype {array.dtype}; expected {self.dtype}, the "
                    "dtype of the cache; convert with astype"
                )
            fits = array.ndim == 4 and (
                (array.shape[0], *array.shape[2:])
                == (self._rows, self.n_kv_heads, width)
            )
            if not fits:
                raise ShapeError(
                    f"{name} has shape {array.shape}; expected [batch, n_new, "
                    f"n_kv_heads, width] = [{self._rows}, n_new, {self.n_kv_heads}, "
                    f"{width}]; all rows grow at once"
                )
            arrays.append(array)
        k, v = arrays
        if k.shape[1] != v.shape[1]:
            raise ShapeError(
                f"k and v have {k.shape[1]} and {v.shape[1]} new tokens; expected "
                "equal n_new; every key has one value"
            )
        return k, v


def _float_type(dtype: np.typing.DTypeLike) -> np.dtype:
    try:
        # NumPy takes None for float64
        kind = None if dtype is None else np.dtype(dtype)
    except TypeError:
        kind = None
    if kind is None or not is_float(kind):
        raise DTypeError(
            f"dtype has {shown(dtype)}; expected float32, float64, float16 or "
            "bfloat16; keys and values are kept in it"
        )
    return kind
