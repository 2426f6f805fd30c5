"""Check the axes of a view: permuted, split, joined, repeated (chapter 15).

None of these moves an element. On chip the partition axis stays where it is.
"""

from collections.abc import Sequence

import numpy as np

from flashlib.errors import FreeSizeError, PartitionError
from flashlib.machine.indexing import whole_numbers

__all__ = [
    "back_to_back",
    "permutation",
    "regrouped",
    "repeated",
    "stretched",
    "strided",
]


def permutation(axes: Sequence[int], ndim: int, on_chip: bool) -> tuple[int, ...]:
    """Return the axes of a permutation that leaves partitions alone."""
    axes = whole_numbers("axes", axes)
    if sorted(axes) != list(range(ndim)):
        raise FreeSizeError(
            f"axes has {axes}; expected a permutation of 0..{ndim - 1}; every axis "
            "appears once; name each axis once"
        )
    if on_chip and axes[0] != 0:
        raise PartitionError(
            f"axes has {axes}; expected axis 0 first; the partition axis cannot "
            "move in an access pattern; use nc_transpose or dma_transpose"
        )
    return axes


def regrouped(
    array: np.ndarray, shape: Sequence[int], on_chip: bool
) -> tuple[int, ...]:
    """Return the shape of a reshape that needs no copy, -1 filled in."""
    shape = whole_numbers("shape", shape)
    try:
        view = array.reshape(shape)
    except (ValueError, OverflowError):
        raise FreeSizeError(
            f"shape has {shape}; expected {array.size} elements in all; a reshape "
            "keeps every element; cut the window first"
        ) from None
    if not np.may_share_memory(view, array):
        raise FreeSizeError(
            f"shape has {shape}; expected axes that join without a copy; strides "
            f"of the window are {array.strides}; permute or copy it first"
        )
    if on_chip and view.shape[:1] != array.shape[:1]:
        raise PartitionError(
            f"shape has {shape}; expected {len(array)} on axis 0; the partition axis "
            "cannot be split or joined; reshape the free axes only"
        )
    return view.shape


def repeated(
    old: tuple[int, ...], shape: Sequence[int], on_chip: bool
) -> tuple[int, ...]:
    """Return a shape in which only free axes of size 1 have grown."""
    shape = whole_numbers("shape", shape)
    if on_chip and shape[:1] != old[:1]:
        raise PartitionError(
            f"shape has {shape}; expected {old[0]} on axis 0; step 0 exists along free "
            "axes only; spread partitions with a matmul of ones, a transpose, "
            "nc_stream_shuffle or a dma"
        )
    if len(shape) != len(old) or any(
        m < 1 or n not in (1, m) for n, m in zip(old, shape, strict=False)
    ):
        raise FreeSizeError(
            f"shape has {shape}; expected {old} with axes of size 1 repeated; step 0 "
            "repeats one element; reshape to an axis of size 1 first"
        )
    return shape


def stretched(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """View an array with axes of size 1 repeated.

    Writable, unlike NumPy's, as a window of it may hold every element once.
    """
    strides = np.broadcast_to(array, shape).strides
    return np.lib.stride_tricks.as_strided(array, shape, strides)


def strided(
    array: np.ndarray, first: int, shape: tuple[int, ...], steps: Sequence[int]
) -> np.ndarray:
    """View a whole array from element ``first`` on, with steps in elements."""
    flat = array.reshape(-1)[first:]
    steps = [step * array.itemsize for step in steps]
    return np.lib.stride_tricks.as_strided(flat, shape, steps)


def back_to_back(array: np.ndarray, first_axis: int) -> int:
    """Count the elements that lie back to back within the axes from one on."""
    run = 1
    for axis in range(array.ndim - 1, first_axis - 1, -1):
        if array.shape[axis] == 1:
            continue
        if array.strides[axis] != run * array.itemsize:
            break
        run *= array.shape[axis]
    return run
