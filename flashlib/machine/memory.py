"""Hand out HBM, the SBUF stack and the PSUM banks, poisoned until written (chapter 15).

Fresh memory counts as unwritten, element by element: reading it is an error, and
copying it out shows NaN. HBM is linear. SBUF is a stack: a tensor takes the same byte
range of every partition, and the room comes back when everything above it is freed as
well. PSUM is eight banks; a tensor takes whole banks.
"""

import itertools
import math
import numbers
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from flashlib.errors import (
    BankError,
    CapacityError,
    FreeSizeError,
    PartitionError,
    shown,
)
from flashlib.machine.dtypes import as_dtype
from flashlib.machine.indexing import whole_numbers
from flashlib.machine.spec import Spec
from flashlib.machine.storage import WRITTEN, Storage
from flashlib.machine.tile import Tile

__all__ = ["Hbm", "Memory", "Psum", "Sbuf"]

_numbers = itertools.count()


class Memory:
    """What the three memories share: poison, scopes, liveness."""

    name = ""
    on_chip = True

    def __init__(self, spec: Spec):
        self.spec = spec
        self._scopes: list[list[Storage]] = []

    def put(self, array: np.ndarray) -> Tile:
        """Hold a copy of an array; leaves no trace record.

        Parameters
        ----------
        array : array_like
            On chip ``[partitions, free axes ...]``, any layout; its dtype is kept.

        Raises
        ------
        FreeSizeError, PartitionError, DTypeError, CapacityError, BankError
            As :meth:`alloc` does, and for rows of several lengths.
        """
        try:
            array = np.asarray(array)
        except ValueError:
            raise FreeSizeError(
                f"array has {shown(array)}; expected rows of one length; an axis has "
                "one size; pad the short ones"
            ) from None
        return self._claim(self._plan(array.shape, as_dtype(array.dtype)), array)

    def _plan(self, shape: Sequence[int], dtype: np.dtype, **place: object) -> Storage:
        shape = self._checked_shape(shape)
        offset, bank, predecessors = self._reserve(shape, dtype, **place)
        return Storage(self, next(_numbers), shape, dtype, offset, bank, predecessors)

    def _claim(self, storage: Storage, values: np.ndarray | None = None) -> Tile:
        """Take the planned place, once this computer has the bytes for it."""
        state, shape = None, storage.shape
        try:
            if values is None:
                array = np.empty(shape, storage.dtype)
                # subtle: UNWRITTEN by zeros, whose pages are taken when written only
                state = np.zeros(shape, np.uint8)
            else:
                array = np.array(values, storage.dtype, order="C")
                if self.name == "psum":
                    state = np.full(shape, WRITTEN, np.uint8)
        except MemoryError:
            raise CapacityError(
                f"shape {shape} has {storage.size * storage.dtype.itemsize} bytes of "
                f"{self.name}; expected what this computer has free; it holds the "
                "memories of the device in its own; free another tensor first"
            ) from None
        storage.complete = values is not None
        self._keep(storage)
        for scope in self._scopes[-1:]:
            scope.append(storage)
        return Tile(storage, array, state, 0 if self.on_chip else None)

    def _checked_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        shape = whole_numbers("shape", shape)
        least = 2 if self.on_chip else 1
        if len(shape) < least or min(shape) < 1:
            axes = "[partitions, free ...]" if self.on_chip else "at least one axis"
            raise FreeSizeError(
                f"shape has {shape}; expected {axes} with sizes of 1 or more; the "
                "machine has no empty tensors; give every axis a size"
            )
        if self.on_chip and shape[0] > self.spec.partitions:
            raise PartitionError(
                f"shape has {shape[0]} partitions; expected at most "
                f"{self.spec.partitions}; axis 0 lies across the partitions; split it "
                "into tiles or move it to a free axis"
            )
        return shape

    @contextmanager
    def scope(self) -> Iterator["Memory"]:
        """Free on exit whatever was allocated inside and is still alive."""
        self._scopes.append([])
        try:
            yield self
        finally:
            for storage in reversed(self._scopes.pop()):
                if storage.live:
                    storage.free()

    def alloc(self, shape: Sequence[int], dtype: object = np.float32) -> Tile:
        """Return a fresh, unwritten tensor.

        Parameters
        ----------
        shape : sequence of int
            On chip ``[partitions, free axes ...]``, at most 128 partitions.
        dtype : numpy dtype, scalar type or name

        Raises
        ------
        FreeSizeError, PartitionError, DTypeError
            For a shape or a type that the machine does not have.
        CapacityError
            When there is no room left.
        """
        return self._claim(self._plan(shape, as_dtype(dtype)))


class Hbm(Memory):
    """The large, linear memory that all cores share."""

    name = "hbm"
    on_chip = False

    def __init__(self, spec: Spec):
        super().__init__(spec)
        self.used = 0

    def _reserve(self, shape, dtype):
        need = math.prod(shape) * dtype.itemsize
        if self.used + need > self.spec.hbm_bytes:
            raise CapacityError(
                f"shape {shape} has {need} bytes of hbm; expected at most "
                f"{self.spec.hbm_bytes - self.used}; the device has "
                f"{self.spec.hbm_bytes}; free another tensor first"
            )
        # the timeline takes hbm as large enough: no tensor waits for room there
        return self.used, None, ()

    def _keep(self, storage: Storage) -> None:
        self.used += storage.row_bytes

    def forget(self, storage: Storage) -> None:
        """Take the room of a freed tensor back."""
        self.used -= storage.row_bytes


class Sbuf(Memory):
    """The scratchpad: 128 partitions, one stack of byte ranges over all of them."""

    name = "sbuf"

    def __init__(self, spec: Spec):
        super().__init__(spec)
        self._stack: list[Storage] = []
        self._graves: list[Storage] = []
        self.peak = 0

    @property
    def used(self) -> int:
        """Bytes per partition up to the top of the stack."""
        if not self._stack:
            return 0
        return self._stack[-1].end

    def _reserve(self, shape, dtype):
        need = math.prod(shape[1:]) * dtype.itemsize
        capacity = self.spec.sbuf_bytes_per_partition
        used = self.used
        if used + need > capacity:
            holes = sum(s.row_bytes for s in self._stack if not s.live)
            raise CapacityError(
                f"shape {shape} has {need} bytes per partition; expected at most "
                f"{capacity - used}; sbuf has {capacity} and {used} are on the stack "
                f"({holes} freed but below a live tensor); free the newest tensors "
                "first or use sbuf.scope()"
            )
        # every grave ends above the stack, so its start alone decides
        before = [g for g in self._graves if g.offset < used + need]
        return used, None, tuple(before)

    def _keep(self, storage: Storage) -> None:
        self._graves = [g for g in self._graves if g.end > storage.end]
        self._stack.append(storage)
        self.peak = max(self.peak, storage.end)

    def forget(self, storage: Storage) -> None:
        """Take the room of a freed tensor back."""
        while self._stack and not self._stack[-1].live:
            self._graves.append(self._stack.pop())


class Psum(Memory):
    """The accumulators of the tensor engine: eight banks of 2 KiB per partition."""

    name = "psum"

    def __init__(self, spec: Spec):
        super().__init__(spec)
        self._banks: list[Storage | None] = [None] * spec.psum_banks
        self._last: list[Storage | None] = [None] * spec.psum_banks

    def alloc(
        self, shape: Sequence[int], dtype: object = np.float32, bank: int | None = None
    ) -> Tile:
        """Return a fresh tensor that starts in ``bank`` and takes whole banks.

        Parameters
        ----------
        shape : sequence of int
            ``[partitions, free axes ...]``, at most 128 partitions.
        dtype : numpy dtype, scalar type or name
        bank : int, optional
            Any free one unless given.

        Raises
        ------
        FreeSizeError, PartitionError, DTypeError
            For a shape or a type that the machine does not have.
        BankError
            When the banks are taken, or too few.
        """
        return self._claim(self._plan(shape, as_dtype(dtype), bank=bank))

    @property
    def free_banks(self) -> tuple[int, ...]:
        """Numbers of the banks that no live tensor holds."""
        return tuple(i for i, s in enumerate(self._banks) if s is None)

    def _span(self, row_bytes: int) -> int:
        return -(-row_bytes // self.spec.psum_bank_bytes)

    def _reserve(self, shape, dtype, bank=None):
        need = math.prod(shape[1:]) * dtype.itemsize
        span, total = self._span(need), self.spec.psum_banks
        if span > total:
            raise BankError(
                f"shape {shape} has {need} bytes per partition; expected at most "
                f"{self.spec.psum_bytes_per_partition}; psum has {total} banks of "
                f"{self.spec.psum_bank_bytes}; split the tile"
            )
        if bank is not None and not (
            isinstance(bank, numbers.Integral) and 0 <= bank <= total - span
        ):
            raise BankError(
                f"bank has {shown(bank)}; expected 0 to {total - span}; psum has banks "
                f"0 to {total - 1} and the tensor takes {span}; leave bank out, and a "
                "free one is taken"
            )
        starts = range(total - span + 1) if bank is None else (bank,)
        for first in starts:
            if not any(self._banks[first : first + span]):
                last = self._last[first : first + span]
                before = dict.fromkeys(s for s in last if s is not None)
                return first * self.spec.psum_bank_bytes, first, tuple(before)
        raise BankError(
            f"bank has {bank}; expected {span} free in a row; free banks are "
            f"{list(self.free_banks)}; free a psum tensor first or use psum.scope()"
        )

    def _range(self, storage: Storage) -> range:
        return range(storage.bank, storage.bank + self._span(storage.row_bytes))

    def _keep(self, storage: Storage) -> None:
        for i in self._range(storage):
            self._banks[i] = storage
            self._last[i] = storage

    def forget(self, storage: Storage) -> None:
        """Take the room of a freed tensor back."""
        for i in self._range(storage):
            self._banks[i] = None
