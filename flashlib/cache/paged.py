"""Keep tokens in pages that any row may own, or share (chapter 14).

Memory is cut into pages of `block_len` tokens. A row owns a list of pages, its
line of the block table, and takes the next one when the last is full: at most
``block_len - 1`` slots per row are reserved and unused. A fork shares the
pages of its parent. A page counts its owners, and is copied only when a row
is about to write into one that others own too.
"""

import heapq

import numpy as np

from flashlib.cache.base import Cache
from flashlib.errors import ArgumentError, CapacityError
from flashlib.validation import check_integer

__all__ = ["PagedCache"]


class PagedCache(Cache):
    """A cache of `num_blocks` pages that all rows draw from.

    Parameters
    ----------
    batch, num_blocks, block_len, n_kv_heads, head_dim : int
    head_dim_v : int, optional
        Width of a value; default: `head_dim`.
    dtype : dtype
        Any float type that attention computes with.

    Examples
    --------
    >>> cache = PagedCache(1, num_blocks=4, block_len=2, n_kv_heads=1, head_dim=1)
    >>> tokens = np.arange(3, dtype="f4").reshape(1, 3, 1, 1)
    >>> cache.append(tokens, tokens)
    >>> cache.fork(0)
    1
    >>> cache.block_table
    array([[ 0,  1, -1, -1],
           [ 0,  1, -1, -1]])
    >>> cache.append(np.ones((2, 1, 1, 1), "f4"), np.ones((2, 1, 1, 1), "f4"))
    >>> cache.block_table[:, :2]
    array([[0, 2],
           [0, 1]])
    """

    def __init__(
        self,
        batch: int,
        num_blocks: int,
        block_len: int,
        n_kv_heads: int,
        head_dim: int,
        *,
        head_dim_v: int | None = None,
        dtype: np.typing.DTypeLike = np.float32,
    ):
        super().__init__(batch, n_kv_heads, head_dim, head_dim_v, dtype)
        self.num_blocks = check_integer("num_blocks", num_blocks, 0, "pages in all")
        self.block_len = check_integer("block_len", block_len, 1, "tokens of a page")
        self._k, self._v = self._allocate(self.num_blocks, self.block_len)
        self._table = np.full((self._rows, self.num_blocks), -1, np.int64)
        self._owners = np.zeros(self.num_blocks, np.int64)
        self._free = list(range(self.num_blocks))  # a heap: the lowest page first

    @property
    def k(self) -> np.ndarray:
        """Key pages, ``[num_blocks, block_len, n_kv_heads, head_dim]``."""
        return self._k

    @property
    def v(self) -> np.ndarray:
        """Value pages, ``[num_blocks, block_len, n_kv_heads, head_dim_v]``."""
        return self._v

    @property
    def capacity(self) -> int:
        """Tokens that fit into all pages together."""
        return self.num_blocks * self.block_len

    @property
    def block_table(self) -> np.ndarray:
        """Pages of every row, int64 ``[batch, num_blocks]``, -1 behind, a copy."""
        return self._table.copy()

    @property
    def free_blocks(self) -> int:
        """Pages that no row owns."""
        return len(self._free)

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
            If there are not enough free pages for all rows.
        """
        k, v = self._checked(k, v)
        n_new = k.shape[1]
        needed = self._pages_needed(n_new)
        if needed > len(self._free):
            raise CapacityError(
                f"k has {n_new} new tokens for {self._rows} rows, which take {needed} "
                f"pages; expected at most {len(self._free)} free pages of "
                f"{self.num_blocks}; free or truncate a row"
            )
        for row in range(self._rows):
            self._grow(row, n_new)
            tokens = self._seqlens[row] + np.arange(n_new)
            pages = self._table[row, tokens // self.block_len]
            slots = tokens % self.block_len
            self._k[pages, slots], self._v[pages, slots] = k[row], v[row]
            self._seqlens[row] += n_new

    def fork(self, seq: int) -> int:
        """Return the index of a new row that shares all pages of row `seq`.

        Takes no page; from now on `append` takes one more row.
        """
        seq = self._row(seq)
        pages = self._table[seq, : self._pages(self._seqlens[seq])]
        self._owners[pages] += 1
        self._table = np.concatenate([self._table, self._table[seq : seq + 1]])
        self._seqlens = np.append(self._seqlens, self._seqlens[seq])
        self._rows += 1
        return self._rows - 1

    def truncate(self, seq: int, length: int) -> None:
        """Forget the tokens of row `seq` from `length` on, as after a wrong guess.

        Raises
        ------
        ArgumentError
            If there is no such row, or it is shorter than `length`.
        """
        seq = self._row(seq)
        length = check_integer("length", length, 0, "a row cannot be shorter")
        if length > self._seqlens[seq]:
            raise ArgumentError(
                f"length has {length}; expected at most {self._seqlens[seq]}, the "
                f"length of row {seq}; truncate only forgets"
            )
        kept, had = self._pages(length), self._pages(self._seqlens[seq])
        for page in self._table[seq, kept:had].tolist():
            self._leave(page)
        self._table[seq, kept:had] = -1
        self._seqlens[seq] = length

    def free(self, seq: int) -> None:
        """Give back the pages of row `seq`; the row stays, with length 0."""
        self.truncate(seq, 0)

    def _row(self, seq: int) -> int:
        seq = check_integer("seq", seq, 0, "rows count from 0")
        if seq >= self._rows:
            raise ArgumentError(
                f"seq has {seq}; expected 0 to {self._rows - 1}; the cache has "
                f"{self._rows} rows"
            )
        return seq

    def _pages(self, length: int) -> int:
        return -(-int(length) // self.block_len)

    def _shares_last(self, row: int, owners: np.ndarray) -> int | None:
        """Return the page that `row` would write into although others own it."""
        if self._seqlens[row] % self.block_len == 0:
            return None
        page = self._table[row, self._seqlens[row] // self.block_len]
        return int(page) if owners[page] > 1 else None

    def _pages_needed(self, n_new: int) -> int:
        """Count the pages that `append` takes, copies of shared ones included."""
        if n_new == 0:
            return 0
        owners, needed = self._owners.copy(), 0
        for row, length in enumerate(self._seqlens):
            shared = self._shares_last(row, owners)
            if shared is not None:
                owners[shared] -= 1
                needed += 1
            needed += self._pages(length + n_new) - self._pages(length)
        return needed

    def _grow(self, row: int, n_new: int) -> None:
        """Give `row` pages of its own for `n_new` more tokens."""
        if n_new == 0:
            return
        length = int(self._seqlens[row])
        shared = self._shares_last(row, self._owners)
        if shared is not None:
            own = self._take()
            self._k[own], self._v[own] = self._k[shared], self._v[shared]
            self._table[row, length // self.block_len] = own
            self._leave(shared)
        for page in range(self._pages(length), self._pages(length + n_new)):
            self._table[row, page] = self._take()

    def _take(self) -> int:
        page = heapq.heappop(self._free)
        self._owners[page] = 1
        return page

    def _leave(self, page: int) -> None:
        self._owners[page] -= 1
        if self._owners[page] == 0:
            heapq.heappush(self._free, page)
