"""Write many bands of a ring at once, one on each partition (chapter 19)."""

import numpy as np

from flashlib.machine import Machine
from flashlib.programs.blocks import PARTITIONS
from flashlib.programs.masks.build import write_band

__all__ = ["ring_bands"]


def ring_bands(n: int, pairs: np.ndarray) -> np.ndarray:
    """Run the window arithmetic of decode for up to 128 bands.

    Every partition holds the slots 0 to n - 1 and a start and an end of its own.

    Parameters
    ----------
    n : int
        Slots of the ring.
    pairs : ndarray
        ``[count, 2]`` starts and ends, at most 128.

    Returns
    -------
    ndarray
        ``[count, n]``, 1 where a slot is kept.
    """
    m = Machine()
    lanes = np.zeros((PARTITIONS, 2), np.float32)
    lanes[: len(pairs)] = pairs
    slots = m.sbuf.put(np.tile(np.arange(n, dtype=np.float32), (PARTITIONS, 1)))
    start, end = m.sbuf.put(lanes[:, :1]), m.sbuf.put(lanes[:, 1:])
    return write_band(m, slots, start, end, end).numpy()[: len(pairs)]
