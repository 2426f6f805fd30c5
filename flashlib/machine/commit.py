"""Round results on write and keep track of what has been written (chapter 15)."""

from typing import NamedTuple

import numpy as np

from flashlib.machine.dtypes import rounded
from flashlib.machine.tile import Tile


class Masked(NamedTuple):
    """A result that is written only where ``where`` is true."""

    values: np.ndarray
    where: np.ndarray


def fitted(tile: Tile, result: np.ndarray | Masked) -> tuple:
    """Round a result to the type and shape of its destination.

    Returns the tile, the values and where to write them (None for everywhere).
    """
    where = None
    if result.__class__ is Masked:
        result, where = result
        where = np.reshape(where, tile.array.shape)
    result = rounded(np.asarray(result), tile.storage.dtype)
    if result.shape != tile.array.shape:
        result = result.reshape(tile.array.shape)
    return tile, result, where


def write(tile: Tile, result: np.ndarray, where: object, matmul: bool) -> None:
    """Store fitted values and mark them as written."""
    storage = tile.storage
    if where is None:
        tile.array[...] = result
        if not storage.complete:
            # subtle: once complete, marks are not looked at again
            if tile.array.size == storage.size:
                storage.complete = True
            else:
                tile.mark[...] = True
    else:
        np.copyto(tile.array, result, where=where)
        if not storage.complete:
            tile.mark[...] |= where
    if tile.matmul is not None:
        if where is None:
            tile.matmul[...] = matmul
        else:
            np.copyto(tile.matmul, matmul, where=where)
