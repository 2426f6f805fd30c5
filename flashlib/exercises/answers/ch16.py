"""More answers to the exercises on layout and crossing (chapter 16)."""

from collections.abc import Callable
from math import ceil

import numpy as np

from flashlib.machine.machine import Machine
from flashlib.machine.tile import Tile


def _weigh(scale: float = 1.0, on_chip: bool = True) -> Callable:
    """Return the two products with one of their parts replaced."""

    def weigh(m: Machine, q: Tile, k: Tile, v: Tile) -> Tile:
        shape = k.shape[1], q.shape[1]
        scores = m.isa.nc_matmul(m.psum.alloc(shape), k, q)
        if on_chip:
            p = m.sbuf.alloc(shape)
            m.isa.activation(p, "exp", scores, scale=scale)
        else:
            p = m.sbuf.put(np.exp(scores.numpy()))
        return m.isa.nc_matmul(m.psum.alloc((v.shape[1], shape[1])), v, p)

    return weigh


def _from_sbuf(m: Machine, q: Tile, k: Tile, v: Tile) -> Tile:
    """Copy the scores down first, overwrite them in place, and copy the result."""
    shape = k.shape[1], q.shape[1]
    p = m.sbuf.alloc(shape)
    m.isa.tensor_copy(p, m.isa.nc_matmul(m.psum.alloc(shape), k, q))
    m.isa.activation(p, "exp", p)
    out = m.isa.nc_matmul(m.psum.alloc((v.shape[1], shape[1])), v, p)
    return m.isa.tensor_copy(m.sbuf.alloc(out.shape), out)


LAYOUT_WRONG = {
    "scaled": _weigh(scale=0.25),
    "exponential_in_numpy": _weigh(on_chip=False),
}
LAYOUT_RIGHT = {"from_sbuf": _from_sbuf}


def _counted(sums: Callable[[int], int], tensors: int = 2) -> Callable:
    """Return the count with another sum, or with another number of loads."""

    def crossing(bytes_per_ns: float) -> int:
        load = tensors * 128 * 128 * 2 / bytes_per_ns
        work = ((2 * max(64, c) + sums(c)) / 2.4 for c in range(1, 513))
        return next((c for c, ns in enumerate(work, 1) if ns >= load), 512)

    return crossing


def _pieces(columns: int) -> int:
    whole, rest = divmod(columns, 128)
    return 64 * whole + min(64, rest)


def _by_halves(bytes_per_ns: float) -> np.int64:
    """Search in a table, because more columns are never less work."""
    columns = np.arange(1, 513)
    sums = 64 * (columns // 128) + np.minimum(64, columns % 128)
    work = (2 * np.maximum(64, columns) + sums) / 2.4
    return np.minimum(512, 1 + np.searchsorted(work, 2**16 / bytes_per_ns))


CROSS_WRONG = {
    "every_piece_is_whole": _counted(lambda c: 64 * ceil(c / 128)),
    "keys_only": _counted(_pieces, tensors=1),
    "one_square_of_ones": _counted(lambda c: c),
}
CROSS_RIGHT = {"by_halves": _by_halves}
