"""Instructions of the vector engine that reduce along free axes (chapter 17).

Partitions are never reduced here: lanes do not meet. Sums over partitions are
matrix products, maxima go through a transpose.
"""

import operator

import numpy as np

from flashlib.errors import FreeSizeError, MachineError, PartitionError
from flashlib.machine import rules
from flashlib.machine.dtypes import BFLOAT16, as_float32
from flashlib.machine.indexing import whole_numbers
from flashlib.machine.instruction import Cost, Issue, Meaning, instruction
from flashlib.machine.isa_vector import bits
from flashlib.machine.operators import ARITHMETIC, BITWISE, REDUCTIONS, apply, named
from flashlib.machine.spec import MIN_CYCLES
from flashlib.machine.tile import ON_CHIP, Tile
from flashlib.machine.trace import Record

__all__ = ["result_column", "tensor_reduce", "tensor_scalar_reduce"]


def _trailing(data: Tile, axis: int | tuple[int, ...]) -> int:
    """Check reduced axes; return how many axes stay."""
    try:
        axes = (operator.index(axis),)
    except TypeError:
        axes = whole_numbers("axis", axis)
    axes = sorted(a + data.ndim if a < 0 else a for a in axes)
    if 0 in axes:
        raise PartitionError(
            f"axis has {axis}; expected free axes only; the vector engine cannot "
            "reduce over partitions; multiply by a vector of ones, or transpose first"
        )
    if not axes or axes != list(range(axes[0], data.ndim)):
        raise FreeSizeError(
            f"axis has {axis}; expected the last axes of shape {data.shape}; the "
            "reduction runs over the innermost loop; permute the window first"
        )
    return axes[0]


def _reduce_cycles(r: Record) -> float:
    types = {o.dtype for o in (*r.reads, *r.writes)}
    return r.n / 2 if types == {BFLOAT16} and r.rate == 2 else r.n


@instruction(
    engines=("vector",),
    memory={"data": ON_CHIP},
    cost=Cost("N; N / 2 for bfloat16 in and out with add or maximum", _reduce_cycles),
    limits=(
        "axis: the last free axes of the window, never axis 0",
        "op: add, subtract, multiply, maximum, minimum, logical or bit operators",
    ),
)
def tensor_reduce(
    issue: Issue,
    dst: Tile,
    op: str,
    data: Tile,
    axis: int | tuple,
    negate: bool = False,
) -> Meaning:
    """Reduce the last free axes of a window; ``negate`` flips the sign for free."""
    reduction = named(REDUCTIONS, op, "op")
    kept = _trailing(data, axis)
    negate = rules.flag("negate", negate)
    rules.same_partitions(data=data, dst=dst)
    size = int(np.prod(data.shape[1:kept], dtype=np.int64))
    if dst.free_size != size:
        raise FreeSizeError(
            f"dst has {dst.free_size} elements per partition; expected {size}; one "
            "result for each element that stays; cut dst to that width"
        )
    exact = op in BITWISE
    if exact:
        bits(issue, dst=dst, data=data)
    if negate and exact:
        raise MachineError(
            f"negate has True with {op}; expected an arithmetic op; bits have no sign; "
            "leave negate out"
        )
    issue.rate = 2.0 if op in ("add", "maximum") else 1.0

    def reduced() -> np.ndarray:
        x = data.array.reshape(data.shape[0], size, -1)
        out = reduction(x if exact else as_float32(x))
        return -out if negate else out

    return reduced


def _reduce_extra(r: Record) -> float:
    return max(MIN_CYCLES, r.n) + MIN_CYCLES


def result_column(reduce_res: object, data: Tile) -> None:
    """A reduction returns one value per partition."""
    if reduce_res is None:
        return
    rules.same_partitions(data=data, reduce_res=reduce_res)
    if reduce_res.free_size != 1:
        raise FreeSizeError(
            f"reduce_res has {reduce_res.free_size} elements per partition; expected "
            "1; the whole row reduces to one value; use a [partitions, 1] tile"
        )


@instruction(
    engines=("vector",),
    memory={"data": ON_CHIP, "reduce_res": ON_CHIP},
    writes=("dst", "reduce_res"),
    cost=Cost("max(64, N) + 64", _reduce_extra),
    limits=(
        "operand0: a number, or float32 [partitions, 1]",
        "reduce_op: add, multiply, maximum or minimum; reduce_res: [partitions, 1]",
    ),
)
def tensor_scalar_reduce(
    issue: Issue,
    dst: Tile,
    data: Tile,
    op0: str,
    operand0: object,
    reduce_op: str,
    reduce_res: Tile,
) -> Meaning:
    """Apply one operator with a scalar and reduce each row of the result."""
    named(ARITHMETIC, op0, "op0")
    named(("add", "multiply", "maximum", "minimum"), reduce_op, "reduce_op")
    rules.same_partitions(data=data, dst=dst)
    rules.same_free_size(data=data, dst=dst)
    result_column(reduce_res, data)
    operand = rules.vector("operand0", operand0, data)

    def applied() -> dict[str, np.ndarray]:
        x = rules.rows(data)
        x = apply(op0, as_float32(x), rules.lanes(operand, 2), False)
        return {"dst": x, "reduce_res": REDUCTIONS[reduce_op](x)}

    return applied
