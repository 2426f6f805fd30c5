"""More answers to the exercises on products and transposes (chapter 15)."""

import numpy as np

from flashlib.machine.machine import Machine
from flashlib.machine.tile import Tile

SHAPES_WRONG = {
    "width_of_values_moves": [(64, 128, 8), (128, 8, 1), (128, 8, 64)],
    "partly_counted": [(64, 128, 8), (128, 8), (128, 64, 8)],
}
SHAPES_RIGHT = {
    "an_array": np.array([[64, 128, 8], [128, 8, 1], [128, 64, 8]]),
    "lists": [[64, 128, 8], [128, 8, 1], [128, 64, 8]],
}


def _ones(m: Machine, x: Tile) -> Tile:
    rows, columns = x.shape
    ones = m.sbuf.put(np.ones((rows, rows), np.float32))
    return m.isa.nc_matmul(m.psum.alloc((columns, rows)), x, ones)


def _by_instruction(m: Machine, x: Tile) -> Tile:
    rows, columns = x.shape
    return m.isa.nc_transpose(m.psum.alloc((columns, rows)), x, engine="tensor")


def _numpy_first(m: Machine, x: Tile) -> Tile:
    """Turn x in NumPy, and multiply what is done already by the identity."""
    rows, columns = x.shape
    still = m.sbuf.put(np.eye(columns, dtype=np.float32))
    moving = m.sbuf.put(x.numpy().T)
    return m.isa.nc_matmul(m.psum.alloc((columns, rows)), still, moving)


def _copied_down(m: Machine, x: Tile) -> Tile:
    rows, columns = x.shape
    out = m.isa.nc_matmul(
        m.psum.alloc((columns, rows)), x, m.sbuf.put(np.eye(rows, dtype=np.float32))
    )
    return m.isa.tensor_copy(m.sbuf.alloc((columns, rows)), out)


def _cut_identity(m: Machine, x: Tile) -> Tile:
    rows, columns = x.shape
    identity = m.sbuf.put(np.eye(128, dtype=np.float32))[:rows, :rows]
    out = m.psum.alloc((columns, rows))
    m.isa.nc_matmul(out, x, identity, accumulate=False)
    return out


FLIP_WRONG = {
    "ones_for_identity": _ones,
    "by_instruction": _by_instruction,
    "numpy_first": _numpy_first,
    "copied_down": _copied_down,
}
FLIP_RIGHT = {"cut_identity": _cut_identity}


def _windows(
    m: Machine, a: np.ndarray, b: np.ndarray, free: bool = True, add: bool = True
) -> np.ndarray:
    """Walk over windows; keep SBUF if not `free`, add in NumPy if not `add`."""
    out = np.zeros((a.shape[1], b.shape[1]))
    for j in range(0, b.shape[1], 512):
        for i in range(0, a.shape[1], 128):
            left, right = a[:, i : i + 128], b[:, j : j + 512]
            with m.psum.scope():
                if free:
                    with m.sbuf.scope():
                        total = _window(m, left, right, add)
                else:
                    total = _window(m, left, right, add)
            out[i : i + 128, j : j + 512] = total
    return out


def _window(m: Machine, a: np.ndarray, b: np.ndarray, add: bool) -> np.ndarray:
    shape, total = (a.shape[1], b.shape[1]), 0
    bank = m.psum.alloc(shape)
    for k in range(0, len(a), 128):
        if not add and k:
            bank = m.psum.alloc(shape)
        m.isa.nc_matmul(bank, m.sbuf.put(a[k : k + 128]), m.sbuf.put(b[k : k + 128]))
        if not add:
            total = total + bank.numpy()
    return bank.numpy() if add else total


ANYSIZE_WRONG = {
    "adds_in_numpy": lambda m, a, b: _windows(m, a, b, add=False),
    "keeps_sbuf": lambda m, a, b: _windows(m, a, b, free=False),
}
ANYSIZE_RIGHT = {"columns_first": _windows}
