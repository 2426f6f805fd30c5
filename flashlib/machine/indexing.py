"""Check the index of a window: slices inside the tensor, partitions whole (chapter 15).

Unlike NumPy, a slice that reaches beyond its axis is refused, not shortened.
"""

import operator

from flashlib.errors import MachineError, OutOfBoundsError, PartitionError


def explicit_key(key: object, shape: tuple[int, ...], on_chip: bool) -> tuple:
    """Spell an index out as one checked entry per axis."""
    if key.__class__ is not tuple:
        key = (key,)
    if len(key) == len(shape) and all(map(_plain, key, shape)):
        return key
    named = sum(k is not None and k is not Ellipsis for k in key)
    if named > len(shape):
        raise OutOfBoundsError(
            f"index has {named} axes; expected at most {len(shape)}; the tensor has "
            f"shape {shape}"
        )
    dots = [i for i, k in enumerate(key) if k is Ellipsis]
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


def _plain(item: object, size: int) -> bool:
    """Tell whether an entry is a slice inside its axis that needs no more checks."""
    if item.__class__ is not slice or item.step is not None:
        return False
    start, stop = item.start, item.stop
    if start.__class__ is int and stop.__class__ is int:
        return 0 <= start < stop <= size
    return start is None and stop is None


def _refuse_new_partition_axis(axis: int, on_chip: bool) -> None:
    if on_chip and axis == 0:
        raise PartitionError(
            "index has a new axis before axis 0; expected the partition axis first; "
            "put None among the free axes"
        )


def _checked(item: object, axis: int, size: int, partition: bool) -> object:
    """Check one slice or integer against the size of its axis."""
    if not isinstance(item, slice):
        i = _integer(item)
        if not -size <= i < size:
            raise OutOfBoundsError(
                f"index {i} on axis {axis}; expected {-size} to {size - 1}; the axis "
                f"has {size} elements"
            )
        i %= size
        return slice(i, i + 1) if partition else i
    if item.start is None and item.stop is None and item.step is None:
        return item
    start, stop, step = item.start, item.stop, item.step
    if partition and step not in (None, 1):
        raise PartitionError(
            f"step {step} on axis 0; expected 1; partitions of a window are "
            "contiguous; move rows with a dma or a shuffle"
        )
    outside = (start is not None and not -size <= start <= size) or (
        stop is not None and not -size <= stop <= size
    )
    bounds = item.indices(size)
    if outside or not len(range(*bounds)):
        raise OutOfBoundsError(
            f"slice {start}:{stop} on axis {axis}; expected a non-empty part of "
            f"0:{size}; the axis has {size} elements"
        )
    if bounds[2] < 0:
        return item
    return slice(*bounds)


def _integer(item: object) -> int:
    try:
        return operator.index(item)
    except TypeError:
        raise MachineError(
            f"index is a {type(item).__name__}; expected integers, slices, None or "
            "...; an access pattern is fixed before the program runs; use "
            ".ap(..., vector_offset=indices) to gather by data"
        ) from None
