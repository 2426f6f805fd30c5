"""Instructions of the vector engine that select and shuffle (chapter 16).

They choose between a tile and a fill value, by index or by data, and move rows
inside a quadrant of 32 partitions.
"""

from collections.abc import Sequence

import numpy as np

from flashlib.errors import (
    FreeSizeError,
    MachineError,
    OutOfBoundsError,
    PartitionError,
    shown,
)
from flashlib.machine import rules
from flashlib.machine.dtypes import (
    FLOAT32_MIN,
    FLOATS,
    UINT8,
    UINT16,
    as_float32,
)
from flashlib.machine.indexing import whole
from flashlib.machine.instruction import Cost, Issue, Masked, Meaning, instruction
from flashlib.machine.isa_reduce import result_column
from flashlib.machine.isa_vector import at_least_64
from flashlib.machine.operators import COMPARISONS, named
from flashlib.machine.tile import ON_CHIP, Tile

__all__ = ["KEEP", "nc_stream_shuffle", "range_select", "select_reduce"]

KEEP = 255


def _only_maximum(reduce_op: str) -> None:
    if reduce_op != "maximum":
        raise MachineError(
            f"reduce_op has {reduce_op!r}; expected 'maximum'; a select reduces with "
            "no other operator; leave it out"
        )


@instruction(
    engines=("vector",),
    memory={
        "on_true_tile": ON_CHIP,
        "bound0": ON_CHIP,
        "bound1": ON_CHIP,
        "reduce_res": ON_CHIP,
    },
    writes=("dst", "reduce_res"),
    cost=Cost("max(64, N)", at_least_64),
    limits=(
        "generation 3 on",
        "on_false_value: -3.4028235e38 only; indices below 2**24",
        "bounds: float32 [partitions, 1]; reduce_op: maximum",
    ),
)
def range_select(
    issue: Issue,
    dst: Tile,
    on_true_tile: Tile,
    comp_op0: str,
    comp_op1: str,
    bound0: Tile,
    bound1: Tile,
    reduce_res: Tile | None = None,
    reduce_op: str = "maximum",
    range_start: int = 0,
    on_false_value: float = FLOAT32_MIN,
) -> Meaning:
    """Keep elements whose index lies in a range, fill the others.

    Element ``i`` of a row stays where ``(range_start + i) comp_op0 bound0`` and
    ``(range_start + i) comp_op1 bound1``; ``reduce_res`` gets the row maximum.
    """
    rules.generation(3, "range_select; use affine_select", issue.spec)
    compare0 = named(COMPARISONS, comp_op0, "comp_op0")
    compare1 = named(COMPARISONS, comp_op1, "comp_op1")
    _only_maximum(reduce_op)
    rules.one_of("on_true_tile", on_true_tile, FLOATS, "the fill is a float")
    rules.same_partitions(on_true_tile=on_true_tile, dst=dst)
    rules.same_free_size(on_true_tile=on_true_tile, dst=dst)
    low = rules.vector("bound0", bound0, on_true_tile)
    high = rules.vector("bound1", bound1, on_true_tile)
    result_column(reduce_res, on_true_tile)
    range_start = whole("range_start", range_start)
    _fill_and_indices(on_false_value, range_start, on_true_tile.free_size)

    def selected() -> dict[str, np.ndarray]:
        x = as_float32(rules.rows(on_true_tile))
        index = np.arange(range_start, range_start + x.shape[1], dtype=np.float32)
        inside = compare0(index, rules.lanes(low, 2)) != 0
        inside &= compare1(index, rules.lanes(high, 2)) != 0
        out = np.where(inside, x, np.float32(FLOAT32_MIN))
        if reduce_res is None:
            return {"dst": out}
        return {"dst": out, "reduce_res": out.max(1)}

    return selected


def _fill_and_indices(fill: float, start: int, n: int) -> None:
    if rules.constant("on_false_value", fill) != np.float32(FLOAT32_MIN):
        raise MachineError(
            f"on_false_value has {fill}; expected {FLOAT32_MIN}; the hardware fills "
            "with the lowest float32 only; use affine_select for another fill"
        )
    if start < 0 or start + n > 2**24:
        raise MachineError(
            f"range_start has {start} with {n} elements; expected indices from 0 to "
            f"{2**24 - 1}; indices are compared in float32, exact below 2**24; move "
            "the bounds instead"
        )


@instruction(
    engines=("vector",),
    memory={"predicate": ON_CHIP, "on_true": ON_CHIP, "reduce_res": ON_CHIP},
    writes=("dst", "reduce_res"),
    cost=Cost("max(64, N)", at_least_64, "ours; no formula was published"),
    limits=(
        "on_true, predicate: not both in psum; equal partitions and elements",
        "on_true: not int32 or uint32; predicate: uint8 or uint16",
        "on_false: a number, or float32 [partitions, 1]; reduce_op: maximum",
    ),
)
def select_reduce(
    issue: Issue,
    dst: Tile,
    predicate: Tile,
    on_true: Tile,
    on_false: object,
    reduce_res: Tile | None = None,
    reduce_op: str = "maximum",
    reverse_pred: bool = False,
) -> Meaning:
    """Take ``on_true`` where the predicate is not 0, else ``on_false``.

    ``reduce_res`` gets the row maximum of the result.
    """
    rules.not_both_in_psum(on_true=on_true, predicate=predicate)
    _only_maximum(reduce_op)
    narrow = (*FLOATS, UINT16, UINT8)
    rules.one_of("on_true", on_true, narrow, "32-bit integers are not selected")
    rules.one_of("predicate", predicate, (UINT8, UINT16), "it holds flags")
    rules.same_partitions(on_true=on_true, predicate=predicate, dst=dst)
    rules.same_free_size(on_true=on_true, predicate=predicate, dst=dst)
    reverse_pred = rules.flag("reverse_pred", reverse_pred)
    other = rules.vector("on_false", on_false, on_true)
    result_column(reduce_res, on_true)

    def selected() -> dict[str, np.ndarray]:
        x = as_float32(rules.rows(on_true))
        take = (rules.rows(predicate) != 0) ^ reverse_pred
        out = np.where(take, x, rules.lanes(other, 2))
        if reduce_res is None:
            return {"dst": out}
        return {"dst": out, "reduce_res": out.max(1)}

    return selected


@instruction(
    engines=("vector",),
    memory={"src": ON_CHIP},
    partial=("src",),
    cost=Cost("max(64, N)", at_least_64),
    limits=(
        "shuffle_mask: 32 entries, 0 to 31 or 255 (keep)",
        "src and dst: one type, equal elements per partition",
        "the larger count, rounded up to 32, sets the start: 96 or 128 at 0, "
        "64 at 0 or 64, 32 at a multiple of 32",
    ),
)
def nc_stream_shuffle(
    issue: Issue, dst: Tile, src: Tile, shuffle_mask: Sequence[int]
) -> Meaning:
    """Move rows inside each quadrant of 32 partitions, the same way in all.

    ``dst[32 q + i] = src[32 q + shuffle_mask[i]]``; 255 leaves the row as it was.
    """
    mask = _shuffle_rows(shuffle_mask, dst, src)
    rules.same_dtype("a shuffle moves bits", src=src, dst=dst)
    rules.same_free_size(src=src, dst=dst)
    rows = np.arange(dst.partitions)
    moves = mask[rows % 32] != KEEP
    source = rows // 32 * 32 + mask[rows % 32]
    missing = moves & (source >= src.partitions)
    if missing.any():
        raise OutOfBoundsError(
            f"shuffle_mask has row {source[missing][0]} of src; expected 0 to "
            f"{src.partitions - 1}; src has {src.partitions} partitions; pass a taller "
            "window or use 255 to keep the row"
        )
    used = np.unique(source[moves])

    def shuffled() -> Masked:
        for row in used:
            rules.written("src", src, int(row))
        values = rules.rows(src)[np.where(moves, source, 0)]
        where = np.broadcast_to(moves[:, None], (dst.partitions, dst.free_size))
        return Masked(values, where)

    return shuffled


def _shuffle_rows(shuffle_mask: Sequence[int], dst: Tile, src: Tile) -> np.ndarray:
    """Check the mask and the start rule of a shuffle; return the mask as an array."""
    try:
        mask = np.asarray(shuffle_mask)
    except ValueError:
        mask = np.zeros(0)
    if mask.shape != (32,) or mask.dtype.kind not in "iu":
        raise FreeSizeError(
            f"shuffle_mask has {shown(shuffle_mask)}; expected 32 integers; a quadrant "
            "has 32 partitions; fill up with 255, which keeps a row"
        )
    if not ((mask >= 0) & (mask < 32) | (mask == KEEP)).all():
        raise OutOfBoundsError(
            f"shuffle_mask has {list(shuffle_mask)}; expected entries 0 to 31, or 255; "
            "rows stay inside their quadrant; move rows between quadrants with a copy"
        )
    active = -(-max(src.partitions, dst.partitions) // 32) * 32
    step = 32 if active == 32 else 64 if active == 64 else 128
    for name, tile in (("src", src), ("dst", dst)):
        if tile.start % step:
            raise PartitionError(
                f"{name} has start partition {tile.start} and {active} active "
                f"partitions; expected a multiple of {step}; {rules.START_RULE}; move "
                "the rows with a dma, which has no such rule"
            )
    return mask
