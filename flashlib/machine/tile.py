"""Look at memory through windows and access patterns that write through (chapter 15).

A ``Tile`` is a view of one allocation. On chip (SBUF, PSUM) axis 0 is the
partition axis: it can be cut into one contiguous piece and nothing else. The
other axes are *free*: they take strides, permutations and step 0 (broadcast).
"""

from collections.abc import Callable, Sequence

import numpy as np

from flashlib.machine import views
from flashlib.machine.dtypes import poison
from flashlib.machine.indexing import explicit_key, plain_index, whole
from flashlib.machine.pattern import Gather, checked_pattern, resolve, revisits
from flashlib.machine.storage import ON_CHIP, UNWRITTEN, Storage

__all__ = ["ON_CHIP", "Tile"]


class Tile:
    """A window of one tensor of the machine.

    Attributes
    ----------
    partitions, free_size : int
        Partitions of the window (1 in HBM) and elements in each.
    """

    __slots__ = (
        "array",
        "at",
        "broadcast",
        "free_size",
        "partitions",
        "start",
        "state",
        "storage",
        "whole",
    )

    def __init__(
        self,
        storage: Storage,
        array: np.ndarray,
        state: np.ndarray | None,
        start: int | None,
        at: int = 0,
        base: "Tile | None" = None,
        broadcast: bool = False,
    ):
        self.storage = storage
        self.array = array
        #: What is known of every element, see storage; None once all is written.
        self.state = state
        #: First partition on chip, None in HBM.
        self.start = start
        #: Bytes from the start of the tensor to the first element.
        self.at = at
        # subtle: None, not self; a cycle would keep the array until the next collection
        self.whole = base
        self.broadcast = broadcast
        self.partitions = 1 if start is None else array.shape[0]
        self.free_size = array.size // self.partitions

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes; on chip ``[partitions, free axes ...]``."""
        return self.array.shape

    @property
    def ndim(self) -> int:
        """Number of axes, the partition axis included."""
        return self.array.ndim

    @property
    def dtype(self) -> np.dtype:
        """Element type."""
        return self.storage.dtype

    @property
    def memory(self) -> str:
        """``"hbm"``, ``"sbuf"`` or ``"psum"``."""
        return self.storage.memory

    @property
    def base(self) -> "Tile":
        """The whole tensor that this is a window of."""
        return self if self.whole is None else self.whole

    @property
    def on_chip(self) -> bool:
        """True in SBUF and PSUM, where axis 0 lies across the partitions."""
        return self.start is not None

    @property
    def start_partition(self) -> int | None:
        """First partition of the window; None in HBM, which has none."""
        return self.start

    @property
    def bank(self) -> int | None:
        """First accumulation bank of the tensor; None outside PSUM."""
        return self.storage.bank

    @property
    def nbytes(self) -> int:
        """Bytes of the window, repeated elements counted as often as they are read."""
        return self.array.size * self.array.itemsize

    def __repr__(self) -> str:
        if not self.on_chip:
            return f"<hbm {list(self.shape)} {self.dtype.name}>"
        rows = f"{self.start}:{self.start + self.partitions}"
        free = ", ".join(str(n) for n in self.shape[1:])
        return f"<{self.memory} [{rows}, {free}] {self.dtype.name}>"

    def numpy(self) -> np.ndarray:
        """Copy out. Unwritten elements show the poison: NaN, or the largest integer."""
        out = np.array(self.array, order="C")
        if not self.storage.complete:
            out[self.state == UNWRITTEN] = poison(out.dtype)
        return out

    def free(self) -> None:
        """Give the tensor back, once; its windows die with it."""
        self.storage.free()

    def is_written(self) -> bool:
        """Tell whether every element of the window has been written."""
        storage = self.storage
        if storage.complete:
            return True
        if not self.state.all():
            return False
        storage.complete = self.array.size == storage.size and not self.broadcast
        return True

    # -- views ----------------------------------------------------------------

    def __getitem__(self, key: object) -> "Tile":
        """Return a window: slices, integers, None and ... as in NumPy.

        On chip an integer on axis 0 keeps that axis, of size 1.

        Raises
        ------
        OutOfBoundsError, PartitionError, MachineError
            For an index that leaves its axis, as nothing is shortened; a step or a
            new axis among the partitions; an index that is data, see :meth:`ap`.
        """
        array, start = self.array, self.start
        if key.__class__ is not tuple:
            key = (key,)
        place = plain_index(key, array.shape, array.strides, start, self.at)
        if place is not None:
            return self._window(key, *place)
        key, skipped = explicit_key(key, array.shape, array.strides, start is not None)
        if start is not None:
            start += key[0].start or 0
        return self._window(key, start, self.at + skipped)

    def _window(self, key: tuple, start: int | None, at: int) -> "Tile":
        storage, state = self.storage, self.state
        # subtle: outside psum nobody asks again once all is written
        asked = storage.bank is not None or not storage.complete
        state = state[key] if asked and state is not None else None
        array = self.array[key]
        repeats = self.broadcast and revisits(
            zip(array.strides, array.shape, strict=True)
        )
        return Tile(storage, array, state, start, at, self.base, repeats)

    def permute(self, axes: Sequence[int]) -> "Tile":
        """Reorder the axes; on chip the partition axis stays first.

        Parameters
        ----------
        axes : sequence of int
            ``axes[i]`` is the old number of axis ``i``, as in NumPy.

        Raises
        ------
        FreeSizeError, PartitionError
            When an axis is missing or named twice; when the partition axis moves.
        """
        axes = views.permutation(axes, self.ndim, self.on_chip)
        return self._view(lambda a: a.transpose(axes))

    def reshape(self, *shape: int | Sequence[int]) -> "Tile":
        """Split or join axes without moving an element.

        Parameters
        ----------
        shape : int or sequence of int
            One number per axis, -1 at most once; on chip axis 0 keeps its size.

        Raises
        ------
        FreeSizeError, PartitionError
            For another number of elements, or axes that join only in a copy; when
            the partition axis would be split or joined.
        """
        if len(shape) == 1 and not isinstance(shape[0], (int, np.integer)):
            shape = shape[0]
        shape = views.regrouped(self.array, shape, self.on_chip)
        tile = self._view(lambda a: a.reshape(shape))
        if self.array.size == self.storage.size and self.array.flags.c_contiguous:
            tile.whole = None
        return tile

    def broadcast_to(self, shape: Sequence[int]) -> "Tile":
        """Repeat free axes of size 1 by step 0; what repeats can only be read.

        Parameters
        ----------
        shape : sequence of int
            As many axes as before; every other size stays.

        Raises
        ------
        FreeSizeError, PartitionError
            When an axis that grows has another size than 1, or lies across partitions.
        """
        shape = views.repeated(self.shape, shape, self.on_chip)
        tile = self._view(lambda a: views.stretched(a, shape))
        tile.broadcast = tile.broadcast or shape != self.shape
        return tile

    def ap(
        self,
        pattern: Sequence[Sequence[int]],
        offset: int = 0,
        *,
        vector_offset: "Tile | None" = None,
        scalar_offset: "Tile | int | None" = None,
        indirect_dim: int = 0,
    ) -> "Tile | Gather":
        """Apply an explicit access pattern ``[[step, num], ...]`` in elements.

        It addresses the whole tensor: the window that ``ap`` is called on is
        ignored, as on the real machine. With one of the two offsets from memory the
        result is a :class:`Gather`, a source for dma_copy and dma_transpose.

        Parameters
        ----------
        pattern : sequence of pairs of int
            One pair per axis of the result; on chip the first walks the partitions.
        offset : int
            Element at which the pattern starts.
        vector_offset : Tile, optional
            ``[partitions, 1]``: each row starts at the row of the tensor given here.
        scalar_offset : Tile or int, optional
            Moves the whole pattern along axis ``indirect_dim`` of the tensor.

        Raises
        ------
        FreeSizeError, PartitionError, OutOfBoundsError, MachineError
            For a pattern that the tensor does not hold, or an offset of another type.
        """
        pattern, offset = checked_pattern(pattern), whole("offset", offset)
        if vector_offset is None and scalar_offset is None:
            return _direct(self.base, pattern, offset)
        return Gather(
            self.base, pattern, offset, vector_offset, scalar_offset, indirect_dim
        )

    def _view(self, function: Callable) -> "Tile":
        """Apply a view that starts at the same element."""
        state = self.state
        return Tile(
            self.storage,
            function(self.array),
            None if state is None else function(state),
            self.start,
            self.at,
            self.base,
            self.broadcast,
        )

    def run_elements(self) -> int:
        """Elements that lie back to back, inside one partition when on chip."""
        return views.back_to_back(self.array, 1 if self.on_chip else 0)


def _direct(base: Tile, pattern: tuple[tuple[int, int], ...], offset: int) -> Tile:
    """View a whole tensor through a static access pattern."""
    start = resolve(base, pattern, offset)
    shape = tuple(n for _, n in pattern)
    steps = [s for s, _ in pattern]
    if base.on_chip:
        steps[0] = base.free_size
    tile = base._view(lambda a: views.strided(a, offset, shape, steps))
    tile.start, tile.at = start, offset * base.dtype.itemsize
    tile.broadcast = revisits(pattern[1:] if base.on_chip else pattern)
    return tile
