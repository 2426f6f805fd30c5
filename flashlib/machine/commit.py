"""Round results on write and keep track of what has been written (chapter 15)."""

from typing import NamedTuple

import numpy as np

from flashlib.machine.dtypes import rounded
from flashlib.machine.tile import Tile

__all__ = ["Masked", "fitted", "write"]


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


def write(tile: Tile, result: np.ndarray, where: object, known: int) -> None:
    """Store fitted values, and what is known of them: WRITTEN or PRODUCT."""
    storage = tile.storage
    # subtle: outside psum, states are not looked at again once all is written
    watched = not storage.complete or storage.memory == "psum"
    if where is not None:
        np.copyto(tile.array, result, where=where)
        if watched:
            np.copyto(tile.state, known, where=where)
        return
    tile.array[...] = result
    if watched:
        tile.state[...] = known
        if tile.array.size == storage.size:
            storage.complete = True
