"""Check the index of a window: slices inside the tensor, partitions whole (chapter 15).

Unlike NumPy, a slice that reaches beyond its axis is refused, not shortened. Integers
of instructions and shapes are checked here as well.
"""

import operator

import numpy as np

from flashlib.errors import (
    FreeSizeError,
    MachineError,
    OutOfBoundsError,
    PartitionError,
    shown,
)

__all__ = ["FIELD", "explicit_key", "plain_index", "whole", "whole_numbers"]

#: Fields of an instruction are 32-bit integers.
FIELD = 2**31


def whole(name: str, value: object, error: type[MachineError] = MachineError) -> int:
    """Return an integer that fits a field of an instruction, or refuse."""
    try:
        number = None if isinstance(value, (bool, np.bool_)) else operator.index(value)
    except TypeError:
        number = None
    if number is None or not -FIELD <= number < FIELD:
        raise error(
            f"{name} has {shown(value)}; expected an integer that 32 bits hold; it is "
            "fixed before the program runs and is neither rounded nor cut; convert it "
            "with int()"
        )
    return number


def whole_numbers(
    name: str, value: object, error: type[MachineError] = FreeSizeError
) -> tuple[int, ...]:
    """Return a tuple of integers, or refuse."""
    try:
        return tuple(operator.index(n) for n in value)
    except TypeError:
        raise error(
            f"{name} has {shown(value)}; expected a sequence of integers; one number "
            f"per axis; write {name}=(2, 3), also for a single axis: (2,)"
        ) from None


def plain_index(
    key: tuple,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    start: int | None,
    at: int,
) -> tuple[int | None, int] | None:
    """Resolve the common case in one pass: slices and integers inside their axes.

    Returns the first partition and first byte of the window, or None for an index
    that needs :func:`explicit_key`, be it legal or not.
    """
    partition = start is not None
    if len(key) > len(shape):
        return None
    for item, size, step in zip(key, shape, strides, strict=False):
        if item.__class__ is slice:
            first, stop = item.start, item.stop
            if item.step is not None:
                return None
            if first.__class__ is int and stop.__class__ is int:
                if not 0 <= first < stop <= size:
                    return None
                at += first * step
                if partition:
                    start += first
            elif first is not None or stop is not None:
                return None
        elif partition or item.__class__ is not int or not 0 <= item < size:
            return None
        else:
            at += item * step
        partition = False
    return start, at


def explicit_key(
    key: tuple, shape: tuple[int, ...], strides: tuple[int, ...], on_chip: bool
) -> tuple[tuple, int]:
    """Check an index; return one entry per axis, and the bytes it skips."""
    key = _spelled_out(key, shape, on_chip)
    at = axis = 0
    for item in key:
        if item is None:
            continue
        # subtle: only the size tells where a slice without a start begins
        first = item.indices(shape[axis])[0] if item.__class__ is slice else item
        at += first * strides[axis]
        axis += 1
    return key, at


def _spelled_out(key: tuple, shape: tuple[int, ...], on_chip: bool) -> tuple:
    """Spell an index out as one checked entry per axis."""
    named = sum(k is not None and k is not Ellipsis for k in key)
    if named > len(shape):
        raise OutOfBoundsError(
            f"index has {named} axes; expected at most {len(shape)}; the tensor has "
            f"shape {shape}; leave axes out, or reshape first"
        )
    dots = [i for i, k in enumerate(key) if k is Ellipsis]
    if len(dots) > 1:
        raise OutOfBoundsError(
            f"index has {len(dots)} ellipses; expected at most one; it stands for the "
            "axes that are not named; write a colon for single axes"
        )
    if dots:
        at = dots[0]
        fill = (slice(None),) * (len(shape) - named)
        key = key[:at] + fill + key[at + 1 :]
    elif named < len(shape):
        key = key + (slice(None),) * (len(shape) - named)
    out, axis = [], 0
    for item in key:
        if item is None:
            _refuse_new_partition_axis(axis, on_chip)
            out.append(None)
            continue
        out.append(_checked(item, axis, shape[axis], on_chip and axis == 0))
        axis += 1
    return tuple(out)


def _refuse_new_partition_axis(axis: int, on_chip: bool) -> None:
    if on_chip and axis == 0:
        raise PartitionError(
            "index has a new axis before axis 0; expected the partition axis first; "
            "partitions are neither split nor joined; put None among the free axes"
        )


def _checked(item: object, axis: int, size: int, partition: bool) -> object:
    """Check one slice or integer against the size of its axis."""
    if not isinstance(item, slice):
        i = _integer(item)
        if not -size <= i < size:
            raise OutOfBoundsError(
                f"index has {i} on axis {axis}; expected {-size} to {size - 1}; the "
                f"axis has {size} elements; negative numbers count from the end"
            )
        i %= size
        return slice(i, i + 1) if partition else i
    return _checked_slice(item, axis, size, partition)


def _checked_slice(item: slice, axis: int, size: int, partition: bool) -> slice:
    """Check one slice against the size of its axis."""
    if item.start is None and item.stop is None and item.step is None:
        return item
    start, stop, step = (
        None if x is None else _integer(x) for x in (item.start, item.stop, item.step)
    )
    if partition and step not in (None, 1):
        raise PartitionError(
            f"index has step {step} on axis 0; expected 1; partitions of a window are "
            "contiguous; move rows with a dma or a shuffle"
        )
    if step == 0:
        raise OutOfBoundsError(
            f"index has step 0 on axis {axis}; expected another step; a slice moves "
            "on; repeat an axis of size 1 with broadcast_to"
        )
    # forwards a slice may name the end of the axis; backwards it starts at an element
    last = size if step is None or step > 0 else size - 1
    outside = (start is not None and not -size <= start <= last) or (
        stop is not None and not -size <= stop <= size
    )
    bounds = slice(start, stop, step).indices(size)
    if outside or not len(range(*bounds)):
        raise OutOfBoundsError(
            f"index has {_as_written(start, stop, step)} on axis {axis}; expected a "
            f"non-empty part of 0:{size}; the axis has {size} elements; cut the slice "
            "at the end of the axis"
        )
    if bounds[2] < 0:
        return item
    return slice(*bounds)


def _as_written(start: int | None, stop: int | None, step: int | None) -> str:
    parts = (start, stop) if step is None else (start, stop, step)
    return ":".join("" if x is None else str(x) for x in parts)


def _integer(item: object) -> int:
    try:
        return operator.index(item)
    except TypeError:
        raise MachineError(
            f"index has type {type(item).__name__}; expected integers, slices, None or "
            "...; an access pattern is fixed before the program runs; use .ap(..., "
            "vector_offset=indices) to gather by data"
        ) from None
