"""Keep every token of a row next to the one before (chapter 14)."""

import numpy as np

from flashlib.cache.base import Cache
from flashlib.errors import CapacityError
from flashlib.validation import check_integer

__all__ = ["ContiguousCache"]


class ContiguousCache(Cache):
    """A cache with room for `capacity` tokens in every row.

    Parameters
    ----------
    batch, capacity, n_kv_heads, head_dim : int
    head_dim_v : int, optional
        Width of a value; default: `head_dim`.
    dtype : dtype
        Any float type that attention computes with.

    Examples
    --------
    >>> cache = ContiguousCache(1, 8, n_kv_heads=1, head_dim=2)
    >>> cache.append(np.ones((1, 3, 1, 2), "f4"), np.ones((1, 3, 1, 2), "f4"))
    >>> cache.seqlens
    array([3])
    >>> cache.append(np.ones((1, 6, 1, 2), "f4"), np.ones((1, 6, 1, 2), "f4"))
    Traceback (most recent call last):
        ...
    flashlib.errors.CapacityError: k has 6 new tokens; ...
    """

    def __init__(
        self,
        batch: int,
        capacity: int,
        n_kv_heads: int,
        head_dim: int,
        *,
        head_dim_v: int | None = None,
        dtype: np.typing.DTypeLike = np.float32,
    ):
        super().__init__(batch, n_kv_heads, head_dim, head_dim_v, dtype)
        self._capacity = check_integer("capacity", capacity, 0, "tokens of a row")
        self._k, self._v = self._allocate(self._rows, self._capacity)

    @property
    def k(self) -> np.ndarray:
        """Keys, ``[batch, capacity, n_kv_heads, head_dim]``."""
        return self._k

    @property
    def v(self) -> np.ndarray:
        """Values, ``[batch, capacity, n_kv_heads, head_dim_v]``."""
        return self._v

    @property
    def capacity(self) -> int:
        """Tokens that fit into a row."""
        return self._capacity

    def append(self, k: np.ndarray, v: np.ndarray) -> None:
        """Add the newest tokens of every row.

        Parameters
        ----------
        k : ndarray
            ``[batch, n_new, n_kv_heads, head_dim]``.
        v : ndarray
            ``[batch, n_new, n_kv_heads, head_dim_v]``.

        Raises
        ------
        ShapeError, DTypeError
            If the arrays do not fit the cache.
        CapacityError
            If a row has no room for them.
        """
        k, v = self._checked(k, v)
        n_new = k.shape[1]
        fullest = int(self._seqlens.max(initial=0))
        if fullest + n_new > self._capacity:
            raise CapacityError(
                f"k has {n_new} new tokens; expected at most "
                f"{self._capacity - fullest}; a row of capacity {self._capacity} "
                f"holds {fullest} already"
            )
        for row, length in enumerate(self._seqlens):
            self._k[row, length : length + n_new] = k[row]
            self._v[row, length : length + n_new] = v[row]
        self._seqlens += n_new
