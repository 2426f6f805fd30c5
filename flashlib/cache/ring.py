"""Keep the last `window` tokens, and forget the rest (chapter 14).

Token t goes to slot ``t % window``, over the token that has just left the
window. Read in slot order, such a ring starts anywhere. This one writes every
token twice, `window` slots apart: the last `window` tokens then always lie in
a row, oldest first, and a kernel for contiguous caches reads them in place::

    window 4, after token 5:   4 5 2 3 | 4 5 2 3
                                   -----------       k[:, :4] is 2 3 4 5
"""

import numpy as np

from flashlib.cache.base import Cache
from flashlib.validation import check_integer

__all__ = ["RingCache"]


class RingCache(Cache):
    """A cache of the last `window` tokens of every row.

    Attention over it sees ``numpy.minimum(cache.seqlens, cache.capacity)`` live
    keys.

    Parameters
    ----------
    batch, window, n_kv_heads, head_dim : int
    head_dim_v : int, optional
        Width of a value; default: `head_dim`.
    dtype : dtype
        Any float type that attention computes with.

    Examples
    --------
    >>> cache = RingCache(1, window=4, n_kv_heads=1, head_dim=1)
    >>> tokens = np.arange(6, dtype="f4").reshape(1, 6, 1, 1)
    >>> cache.append(tokens, tokens)
    >>> cache.v.ravel(), cache.seqlens
    (array([2., 3., 4., 5.], dtype=float32), array([6]))
    """

    def __init__(
        self,
        batch: int,
        window: int,
        n_kv_heads: int,
        head_dim: int,
        *,
        head_dim_v: int | None = None,
        dtype: np.typing.DTypeLike = np.float32,
    ):
        super().__init__(batch, n_kv_heads, head_dim, head_dim_v, dtype)
        self._window = check_integer("window", window, 1, "it counts the newest token")
        self._k, self._v = self._allocate(self._rows, 2 * self._window)
        self._seen = 0

    @property
    def k(self) -> np.ndarray:
        """Keys, ``[batch, window, n_kv_heads, head_dim]``, oldest first, a view."""
        return self._k[:, self._live]

    @property
    def v(self) -> np.ndarray:
        """Values, ``[batch, window, n_kv_heads, head_dim_v]``, oldest first."""
        return self._v[:, self._live]

    @property
    def capacity(self) -> int:
        """Tokens that are kept, the window."""
        return self._window

    @property
    def _live(self) -> slice:
        start = self._seen % self._window if self._seen >= self._window else 0
        return slice(start, start + self._window)

    def append(self, k: np.ndarray, v: np.ndarray) -> None:
        """Add the newest tokens of every row; of more than `window`, the last.

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
        """
        k, v = self._checked(k, v)
        n_new = k.shape[1]
        kept = min(n_new, self._window)
        tokens = np.arange(self._seen + n_new - kept, self._seen + n_new)
        slots = tokens % self._window
        for memory, new in ((self._k, k), (self._v, v)):
            # a copy: the tokens may lie in this very ring
            last = new[:, n_new - kept :].copy()
            memory[:, slots] = last
            memory[:, slots + self._window] = last
        self._seen += n_new
        self._seqlens += n_new
