"""Remember of each allocation its owner, its place and its life (chapter 15)."""

import numpy as np

ON_CHIP = frozenset({"sbuf", "psum"})


class Storage:
    """One allocation: who owns it, where it lies, and whether it is alive."""

    __slots__ = (
        "bank",
        "complete",
        "dtype",
        "id",
        "live",
        "memory",
        "offset",
        "owner",
        "predecessors",
        "row_bytes",
        "shape",
        "size",
    )

    def __init__(self, owner, number, shape, dtype, offset, bank, predecessors):
        self.owner = owner
        self.memory = owner.name
        self.id = number
        self.shape = shape
        self.size = int(np.prod(shape, dtype=np.int64))
        self.dtype = dtype
        self.offset = offset
        self.bank = bank
        self.predecessors = predecessors
        on_chip = self.memory in ON_CHIP
        rows = shape[0] if on_chip else 1
        self.row_bytes = self.size // rows * dtype.itemsize
        self.live = True
        self.complete = False
