"""Instructions of the DMA engines: copies, gathers and transposes (chapter 15).

DMA moves bytes between HBM and SBUF, never PSUM, and computes nothing but a cast
through float32. It is free of the start-partition rule. What it pays for is short
runs: a descriptor covers bytes that lie back to back on both sides.
"""

import math
from collections.abc import Sequence

import numpy as np

from flashlib.errors import FreeSizeError, MachineError, PartitionError
from flashlib.machine import gather, rules
from flashlib.machine.dtypes import as_float32
from flashlib.machine.indexing import whole_numbers
from flashlib.machine.instruction import (
    HBM_OR_SBUF,
    SBUF,
    Cost,
    Issue,
    Masked,
    Meaning,
    instruction,
)
from flashlib.machine.pattern import Gather
from flashlib.machine.tile import Tile

__all__ = [
    "BLOCK_ELEMENTS",
    "DMA_COST",
    "OOB_MODES",
    "TRANSPOSES",
    "dma_copy",
    "dma_transpose",
]

OOB_MODES = ("error", "skip")
#: 32 KiB of float32: how much of a tensor is turned at a time.
BLOCK_ELEMENTS = 8192
TRANSPOSES = {2: (1, 0), 3: (2, 1, 0), 4: (3, 1, 2, 0)}

#: DMA time is bytes and latency, not engine cycles: see the timeline.
DMA_COST = Cost("no engine cycles; bytes and runs, see timeline", lambda r: 0.0, "ours")


def _measure(issue: Issue, dst: Tile, src: Tile | Gather, elements: int, run: int):
    """Count bytes where HBM takes part, and the run that both sides share."""
    side = dst if dst.memory == "hbm" and src.memory != "hbm" else src
    issue.nbytes = elements * side.dtype.itemsize
    issue.run_bytes = math.gcd(run, dst.run_elements()) * side.dtype.itemsize


def _oob(oob_mode: str) -> bool:
    if oob_mode not in OOB_MODES:
        raise MachineError(
            f"oob_mode has {oob_mode!r}; expected 'error' or 'skip'; an index outside "
            "its tensor does one of the two; leave it out for 'error'"
        )
    return oob_mode == "skip"


@instruction(
    engines=("dma",),
    memory={"dst": HBM_OR_SBUF, "src": HBM_OR_SBUF},
    partial=("src",),
    gathers=("src",),
    cost=DMA_COST,
    lanes=False,
    limits=(
        "dst and src: equal numbers of elements; never psum",
        "gather: indices int32 or uint32 [partitions, 1] in sbuf, indirect_dim 0, "
        "rows of a tensor in hbm",
        "index outside the tensor: an error, or the row is skipped",
    ),
)
def dma_copy(
    issue: Issue, dst: Tile, src: Tile | Gather, oob_mode: str = "error"
) -> Meaning:
    """Copy in row-major order, casting through float32 when the types differ.

    A source of ``t.ap(pattern, vector_offset=indices)`` is a gather: partition ``p``
    of dst gets row ``indices[p]`` of t, its step taken from t, not from the pattern.
    """
    skip = _oob(oob_mode)
    if isinstance(src, Gather):
        return _gathered_copy(issue, dst, src, skip)
    if dst.array.size != src.array.size:
        raise FreeSizeError(
            f"dst has {dst.array.size} elements; expected {src.array.size} like src; a "
            "dma neither drops nor repeats; cut windows of one size"
        )
    _measure(issue, dst, src, src.array.size, src.run_elements())

    def copied() -> np.ndarray:
        rules.all_written("src", src)
        return _cast(src.array, dst)

    return copied


def _cast(values: np.ndarray, dst: Tile) -> np.ndarray:
    """Keep the bits of one type, widen to float32 on the way to another."""
    return values if values.dtype == dst.dtype else as_float32(values)


def _gathered_copy(issue: Issue, dst: Tile, src: Gather, skip: bool):
    """A copy whose rows, or whose start, come from data."""
    gather.check_source(src)
    elements = math.prod(src.shape)
    if dst.array.size != elements:
        raise FreeSizeError(
            f"dst has {dst.array.size} elements; expected {elements} like the pattern "
            "of src; a dma neither drops nor repeats; cut dst to that size"
        )
    if src.vector is not None and dst.partitions != src.shape[0]:
        raise PartitionError(
            f"dst has {dst.partitions} partitions; expected {src.shape[0]} like the "
            "pattern of src; each partition takes one row; cut dst to that height"
        )
    run = gather.run_elements(src.pattern[1:])

    def copied() -> Masked:
        rows = gather.rows(src, skip)
        values = gather.fetch(src, rows)
        take = np.broadcast_to((rows >= 0)[:, None], (len(rows), values.shape[1]))
        _measure(issue, dst, src, int(take.sum()), run)
        return Masked(_cast(values, dst), take)

    return copied


@instruction(
    engines=("dma",),
    memory={"dst": SBUF, "src": HBM_OR_SBUF},
    partial=("src",),
    gathers=("src",),
    cost=DMA_COST,
    lanes=False,
    limits=(
        "generation 3 on; axes (1, 0), (2, 1, 0) or (3, 1, 2, 0); equal ranks",
        "dst in sbuf; dst and src: one type of 2 or 4 bytes",
        "gather: src in hbm, 2 bytes, rows divisible by 16, last axis at most 128; "
        "uint32 indices [16 to 128 in steps of 16, n] in sbuf, read column by column; "
        "axis 1 or 2 of a 4-d source has size 1",
    ),
)
def dma_transpose(
    issue: Issue,
    dst: Tile,
    src: Tile | Gather,
    axes: Sequence[int] | None = None,
    oob_mode: str = "error",
) -> Meaning:
    """Transpose on the way: the first axis of src becomes the last of dst.

    It reaches 90% of the copy rate from HBM and 50% from SBUF.
    """
    skip = _oob(oob_mode)
    rules.generation(3, "dma_transpose; use nc_transpose", issue.spec)
    order = _transpose_axes(dst, src, axes)
    rules.same_dtype("a transpose moves bits", src=src, dst=dst)
    if src.dtype.itemsize not in (2, 4):
        rules.refuse_width("src", src.dtype, "2 or 4")
    from_hbm = src.memory == "hbm"
    issue.rate = (
        issue.spec.dma_transpose_hbm if from_hbm else issue.spec.dma_transpose_sbuf
    )
    if isinstance(src, Gather):
        return _gathered_transpose(issue, dst, src, order, skip)
    issue.nbytes = src.nbytes
    issue.run_bytes = min(src.run_elements(), src.shape[-1]) * src.dtype.itemsize

    def transposed() -> np.ndarray:
        rules.all_written("src", src)
        return _turned(src.array, order)

    return transposed


def _turned(array: np.ndarray, order: tuple[int, ...]) -> np.ndarray:
    """Transpose by blocks of rows that fit the first-level cache.

    Columns of a whole tensor are 4,096 bytes apart: they would meet in one set of
    the cache, and drive each other out.
    """
    out = np.empty([array.shape[axis] for axis in order], array.dtype)
    rows = max(1, BLOCK_ELEMENTS * len(array) // array.size)
    for first in range(0, len(array), rows):
        block = np.ascontiguousarray(array[first : first + rows])
        out[..., first : first + rows] = block.transpose(order)
    return out


def _transpose_axes(dst: Tile, src: Tile | Gather, axes: object) -> tuple[int, ...]:
    """Check rank, axes and shape; return the permutation."""
    shape = src.shape
    order = TRANSPOSES.get(len(shape))
    axes = None if axes is None else whole_numbers("axes", axes)
    if order is None or axes not in (None, order):
        raise FreeSizeError(
            f"axes has {axes} for {len(shape)} axes; expected (1, 0), (2, 1, 0) or (3, "
            "1, 2, 0); a dma transposes no other way; permute the window"
        )
    expected = tuple(shape[a] for a in order)
    if dst.shape[0] != expected[0]:
        raise PartitionError(
            f"dst has {dst.partitions} partitions; expected {expected[0]}; the last "
            "axis of src becomes the partition axis; cut dst to that height"
        )
    if dst.shape != expected:
        raise FreeSizeError(
            f"dst has shape {dst.shape}; expected {expected}, src transposed; ranks "
            "and sizes agree; reshape or cut dst"
        )
    return order


def _gathered_transpose(issue: Issue, dst: Tile, src: Gather, order, skip: bool):
    """Gather rows by index, then transpose them."""
    gather.check_transpose(src)
    count = src.shape[0]

    def transposed() -> Masked:
        rows = gather.rows(src, skip)[:count]
        values = gather.fetch(src, rows).reshape(src.shape)
        take = np.zeros(src.shape, bool)
        take[rows >= 0] = True
        issue.nbytes = int(take.sum()) * src.dtype.itemsize
        run = min(gather.run_elements(src.pattern[1:]), src.shape[-1])
        issue.run_bytes = run * src.dtype.itemsize
        return Masked(values.transpose(order), take.transpose(order))

    return transposed
