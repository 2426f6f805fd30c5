"""Give kernels room: aligned, in whole steps, and lent from call to call (chapter 9).

Memory is cheap to ask for and dear to touch: a fresh page is filled with zeros
first. So one array of each process is lent to call after call.
"""

import numpy as np

from flashlib.kernels.jit import inner

__all__ = ["Room", "aligned", "round_up"]

# Bytes of a cache line, and of the widest vector register.
LINE = 64
# Room for panels that is kept from one call to the next: K and V of 4,096 tokens
# with 8 heads of 128 floats.
KEPT_BYTES = 32 * 2**20


class Room:
    """An array that is lent to one call at a time."""

    def __init__(self):
        self._kept = np.empty(0, np.uint8)

    def lend(self, count: int, dtype: np.dtype) -> np.ndarray:
        """Return room for `count` numbers; a small one is kept for the next call.

        Fresh memory comes page by page, each filled with zeros on first touch;
        for a short sequence that takes as long as packing it.
        """
        n_bytes = count * dtype.itemsize
        room = self._kept
        if room.nbytes < n_bytes:
            room = np.empty(n_bytes, np.uint8)
            if n_bytes <= KEPT_BYTES:
                self._kept = room
        return room[:n_bytes].view(dtype)


@inner
def round_up(n, step):
    """Return the first multiple of `step` that is not below `n`."""
    return (n + step - 1) // step * step


@inner
def aligned(size, like):
    """Return an array of the type of `like` that starts on a cache line.

    A vector that crosses a line costs two accesses.
    """
    slack = LINE // like.itemsize
    buffer = np.empty(size + slack, like.dtype)
    start = (-buffer.ctypes.data % LINE) // like.itemsize
    return buffer[start : start + size]
