"""Memory that is read in tiles, for the loop that a reader writes (chapter 5)."""

from __future__ import annotations

import numpy as np

from .exercise import WrongStepError, expect


class Strip:
    """Rows in memory that are read in tiles: no cut at the end, every read counted.

    Parameters
    ----------
    name : str
        What messages call it.
    rows : ndarray
        ``[n, width]``; after them there is NaN.
    tile : int
        The most rows that one read may take.

    Examples
    --------
    >>> Strip("k", np.ones((3, 1)), tile=2)[2:4]
    array([[ 1.],
           [nan]])
    """

    def __init__(self, name: str, rows: np.ndarray, tile: int) -> None:
        after = np.full((tile + 1, rows.shape[1]), np.nan)
        self.name, self.tile, self.n = name, tile, len(rows)
        self.shape, self.dtype = rows.shape, rows.dtype
        self.memory = np.concatenate([rows, after])
        self.reads = np.zeros(len(self.memory), int)

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, key: object) -> np.ndarray:
        if not isinstance(key, slice):
            if not 0 <= key < self.n:
                raise IndexError(f"row {key} of {self.name}, which has {self.n} rows")
            self.reads[key] += 1
            return self.memory[key].copy()
        start, stop, _ = key.indices(len(self.memory))
        if key.stop is None:
            stop = self.n
        expect(
            stop - start <= self.tile,
            f"{self.name}[{start}:{stop}] is {stop - start} rows at once; the tile "
            f"is {self.tile}",
        )
        self.reads[start:stop] += 1
        return self.memory[start:stop].copy()

    def __array__(self, *args: object, **options: object) -> np.ndarray:
        raise WrongStepError(
            f"you take {self.name} whole, {self.n} rows; the tile is {self.tile}"
        )
