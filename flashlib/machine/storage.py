"""Remember of each allocation its owner, its place and its life (chapter 15)."""

import numpy as np

from flashlib.errors import PlacementError

__all__ = ["ON_CHIP", "PRODUCT", "UNWRITTEN", "WRITTEN", "Storage"]

ON_CHIP = frozenset({"sbuf", "psum"})

#: What is known of an element. Only psum tells who wrote it: the tensor engine adds
#: to its own products and to nothing else.
UNWRITTEN, WRITTEN, PRODUCT = 0, 1, 2


class Storage:
    """One allocation: who owns it, where it lies, and whether it is alive."""

    __slots__ = (
        "bank",
        "complete",
        "dtype",
        "id",
        "memory",
        "offset",
        "owner",
        "predecessors",
        "row_bytes",
        "shape",
        "size",
    )

    def __init__(
        self,
        owner,
        number: int,
        shape: tuple[int, ...],
        dtype: np.dtype,
        offset: int,
        bank: int | None,
        predecessors: "tuple[Storage, ...]",
    ):
        self.owner = owner
        self.memory = owner.name
        self.id = number
        self.shape = shape
        self.size = int(np.prod(shape, dtype=np.int64))
        self.dtype = dtype
        self.offset = offset
        self.bank = bank
        #: Freed tensors that lay in the same room, each the last one there.
        self.predecessors = predecessors
        on_chip = self.memory in ON_CHIP
        rows = shape[0] if on_chip else 1
        self.row_bytes = self.size // rows * dtype.itemsize
        self.complete = False

    @property
    def live(self) -> bool:
        """True until the tensor is given back; a freed one has no owner."""
        return self.owner is not None

    @property
    def end(self) -> int:
        """First byte behind the tensor, in every partition when on chip."""
        return self.offset + self.row_bytes

    def overlaps(self, other: "Storage") -> bool:
        """Tell whether two tensors of one memory take a byte in common.

        In psum that is a bank in common: a tensor takes the first byte of each.
        """
        return self.offset < other.end and other.offset < self.end

    def free(self) -> None:
        """Give the tensor back to its memory."""
        if self.owner is None:
            raise PlacementError(
                f"tensor in {self.memory} has been freed already; expected a live "
                "tensor; free it once, or leave it to the scope"
            )
        owner, self.owner = self.owner, None
        owner.forget(self)
