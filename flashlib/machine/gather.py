"""Gather rows of an HBM tensor by indices that lie in SBUF (chapters 15, 21).

The row step comes from the tensor, not from the pattern; the pattern says how many
rows and what to read in each.
"""

import math

import numpy as np

from flashlib.errors import (
    FreeSizeError,
    MachineError,
    OutOfBoundsError,
    PartitionError,
    UninitializedError,
)
from flashlib.machine import rules
from flashlib.machine.dtypes import INT32, UINT32
from flashlib.machine.indexing import whole
from flashlib.machine.pattern import Gather, extent
from flashlib.machine.tile import Tile

__all__ = [
    "SKIPPED",
    "check_source",
    "check_transpose",
    "fetch",
    "rows",
    "run_elements",
]

#: Marks a row that an out-of-bounds index skips.
SKIPPED = -1


def check_source(src: Gather) -> None:
    """Check everything about a gather that does not depend on the indices."""
    if src.vector is not None and src.scalar is not None:
        raise MachineError(
            "vector_offset and scalar_offset have one value each; expected one of the "
            "two; a pattern is moved row by row or as a whole; leave one out"
        )
    if src.memory != "hbm":
        rules.refuse_memory("src", src.memory, "hbm", "a gather")
    if src.vector is not None:
        _check_dim(src)
        _check_index("vector_offset", src.vector, (INT32, UINT32))
        if src.vector.shape != (src.shape[0], 1):
            raise PartitionError(
                f"vector_offset has shape {src.vector.shape}; expected "
                f"({src.shape[0]}, 1); each partition of the pattern takes one index; "
                "cut the indices to that height"
            )
        return
    _check_move(src)


def _check_move(src: Gather) -> None:
    """Check the offset that moves a whole pattern."""
    if not 0 <= whole("indirect_dim", src.indirect_dim) < src.base.ndim:
        raise MachineError(
            f"indirect_dim has {src.indirect_dim}; expected 0 to {src.base.ndim - 1}; "
            "scalar_offset counts along an axis of the tensor; count axes from 0"
        )
    if isinstance(src.scalar, Tile):
        _check_index("scalar_offset", src.scalar, (INT32, UINT32))
        if src.scalar.array.size != 1:
            raise FreeSizeError(
                f"scalar_offset has {src.scalar.array.size} elements; expected 1; one "
                "offset moves the whole pattern; cut it to [1, 1]"
            )
    else:
        whole("scalar_offset", src.scalar)


def check_transpose(src: Gather) -> None:
    """Check the tighter rules of a gathering transpose."""
    if src.vector is None:
        raise MachineError(
            "vector_offset has None; expected indices; a transpose gathers rows only; "
            "pass vector_offset, or gather with dma_copy"
        )
    if src.memory != "hbm":
        rules.refuse_memory("src", src.memory, "hbm", "a gather")
    _check_dim(src)
    _check_index("vector_offset", src.vector, (UINT32,))
    if src.dtype.itemsize != 2:
        rules.refuse_width("src", src.dtype, "2")
    count, last = src.shape[0], src.shape[-1]
    if count % 16 or last > 128 or (len(src.shape) == 4 and min(src.shape[1:3]) > 1):
        raise FreeSizeError(
            f"pattern of src has shape {src.shape}; expected rows divisible by 16, a "
            "last axis of at most 128 and size 1 on axis 1 or 2 of four; the "
            "gathering transpose takes no other; gather with dma_copy, then transpose"
        )
    height, columns = src.vector.partitions, src.vector.free_size
    tall = height == 128 if columns > 1 else 16 <= height <= 128 and height % 16 == 0
    if not tall or height * columns < count:
        raise PartitionError(
            f"vector_offset has shape {src.vector.shape}; expected 16 to 128 "
            f"partitions in steps of 16 (128 for several columns) and at least {count} "
            "indices; they are read column by column; lay them out in such a shape"
        )


def _check_dim(src: Gather) -> None:
    if whole("indirect_dim", src.indirect_dim) != 0:
        raise MachineError(
            f"indirect_dim has {src.indirect_dim}; expected 0; only rows can be "
            "gathered; move along another axis with scalar_offset"
        )


def _check_index(name: str, index: Tile, types: tuple) -> None:
    if not isinstance(index, Tile):
        raise MachineError(
            f"{name} has type {type(index).__name__}; expected a tensor in sbuf; "
            "indices are read while the program runs; load them with dma_copy"
        )
    if index.memory != "sbuf":
        rules.refuse_memory(name, index.memory, "sbuf", "the descriptor generator")
    rules.one_of(name, index, types, "an index is a row number")


def _row_step(src: Gather, axis: int = 0) -> int:
    return math.prod(src.base.shape[axis + 1 :])


def rows(src: Gather, skip: bool) -> np.ndarray:
    """First element of every row; SKIPPED where the index is out of bounds."""
    if src.vector is None:
        return _moved_rows(src, skip)
    index = src.vector.array.T.reshape(-1).astype(np.int64)
    count, step = src.base.shape[0], _row_step(src)
    first = src.offset + index * step
    low, high = extent(src.pattern[1:])
    outside = (index < 0) | (index >= count)
    outside |= (first + low < 0) | (first + high >= src.base.array.size)
    used = np.arange(len(index)) < src.shape[0]
    if (outside & used).any() and not skip:
        at = int(np.flatnonzero(outside & used)[0])
        raise OutOfBoundsError(
            f"vector_offset has {index[at]} at partition "
            f"{at % src.vector.partitions}{_column(at, src.vector)}; expected 0 to "
            f"{count - 1}, with all of the pattern inside the tensor; it has {count} "
            "rows; repair the table or use oob_mode='skip'"
        )
    return np.where(outside, SKIPPED, first)


def _column(at: int, index: Tile) -> str:
    if index.free_size == 1:
        return ""
    return f", column {at // index.partitions}"


def _moved_rows(src: Gather, skip: bool) -> np.ndarray:
    """The whole pattern, moved by one offset."""
    axis = src.indirect_dim
    value = src.scalar
    value = int(value.array.item()) if isinstance(value, Tile) else int(value)
    step, num = src.pattern[0]
    start = src.offset + value * _row_step(src, axis)
    low, high = extent(src.pattern)
    size = src.base.array.size
    if start + low < 0 or start + high >= size or value < 0:
        if skip:
            return np.full(num, SKIPPED)
        raise OutOfBoundsError(
            f"scalar_offset has {value}; expected the pattern inside {size} elements; "
            f"it reaches {start + low} to {start + high}; use oob_mode='skip' to leave "
            "dst as it is"
        )
    return start + step * np.arange(num)


def fetch(src: Gather, first: np.ndarray) -> np.ndarray:
    """Read the rows; values of skipped rows are those of element 0, never written."""
    inner = np.zeros(1, np.int64)
    for step, num in src.pattern[1:]:
        inner = (inner[:, None] + step * np.arange(num)).reshape(-1)
    taken = first >= 0
    where = np.where(taken, first, 0)[:, None] + np.where(taken[:, None], inner, 0)
    base = src.base
    if not base.storage.complete and not base.state.reshape(-1)[where[taken]].all():
        raise UninitializedError(
            "src has unwritten elements in a gathered row; expected all written; "
            "fresh memory holds no value; fill the tensor first"
        )
    return base.array.reshape(-1)[where]


def run_elements(pattern: tuple) -> int:
    """Elements of one row that lie back to back."""
    run = 1
    for step, num in reversed(pattern):
        if num == 1:
            continue
        if step != run:
            break
        run *= num
    return run
