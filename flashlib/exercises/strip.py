"""Memory that is read in tiles, for the loop that a reader writes (chapter 5)."""

import numpy as np

from flashlib.exercises.exercise import WrongStepError, expect


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
    turns : list of str
        Shared between strips: the name of a strip, whenever another one was read last.

    Attributes
    ----------
    reads : ndarray
        How often each row was read.
    beyond : str
        What to say of the first read behind the last row; empty if there was none.

    Examples
    --------
    >>> Strip("k", np.ones((3, 1)), tile=2)[2:4]
    array([[ 1.],
           [nan]])
    """

    def __init__(
        self, name: str, rows: np.ndarray, tile: int, turns: list[str] | None = None
    ) -> None:
        after = np.full((tile + 1, rows.shape[1]), np.nan)
        self.name, self.tile, self.n = name, tile, len(rows)
        self.shape, self.dtype = rows.shape, rows.dtype
        self.memory = np.concatenate([rows, after])
        self.reads = np.zeros(len(self.memory), int)
        self.turns, self.beyond = [] if turns is None else turns, ""

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, key: object) -> np.ndarray:
        if not isinstance(key, slice):
            if not 0 <= key < self.n:
                raise IndexError(f"row {key} of {self.name}, which has {self.n} rows")
            return self._read(slice(key, key + 1))[0]
        start, stop, _ = key.indices(len(self.memory))
        if key.stop is None:
            stop = self.n
        expect(
            stop - start <= self.tile,
            f"{self.name}[{start}:{stop}] is {stop - start} rows at once; the tile "
            f"is {self.tile}",
        )
        if stop > self.n and not self.beyond:
            self.beyond = (
                f"; you read {self.name}[{start}:{stop}], and behind row {self.n - 1} "
                f"there is NaN: cut the last tile off at len({self.name})"
            )
        return self._read(slice(start, stop))

    def _read(self, rows: slice) -> np.ndarray:
        """Count a read and note a turn from one strip to another."""
        self.reads[rows] += 1
        if self.turns[-1:] != [self.name]:
            self.turns.append(self.name)
        return self.memory[rows].copy()

    def __array__(self, *args: object, **options: object) -> np.ndarray:
        raise WrongStepError(
            f"you take {self.name} whole, {self.n} rows; the tile is {self.tile}"
        )
