"""Instructions that copy and fill on chip, on whichever engine is free (chapter 15)."""

import numbers

import numpy as np

from flashlib.machine import rules
from flashlib.machine.dtypes import (
    BFLOAT16,
    FLOAT16,
    INTEGERS,
    UINT8,
    UINT16,
    UINT32,
    as_float32,
)
from flashlib.machine.instruction import Cost, Issue, Masked, Meaning, instruction
from flashlib.machine.isa_vector import at_least_64
from flashlib.machine.spec import MIN_CYCLES
from flashlib.machine.tile import ON_CHIP, Tile
from flashlib.machine.trace import Record

__all__ = ["memset", "tensor_copy", "tensor_copy_predicated"]


@instruction(
    engines=("vector", "scalar", "gpsimd"),
    memory={"src": ON_CHIP},
    cost=Cost("max(64, N)", at_least_64),
    limits=("scalar engine: generation 3 on; gpsimd: sbuf only",),
)
def tensor_copy(issue: Issue, dst: Tile, src: Tile) -> Meaning:
    """Copy a tile; the same type bit for bit, another one through float32."""
    if issue.engine == "scalar":
        rules.generation(
            3, "tensor_copy on the scalar engine; use activation", issue.spec
        )
    rules.same_partitions(src=src, dst=dst)
    rules.same_free_size(src=src, dst=dst)
    if src.dtype == dst.dtype:
        return lambda: src.array
    return lambda: as_float32(src.array)


@instruction(
    engines=("vector",),
    memory={"src": ON_CHIP, "predicate": ON_CHIP},
    cost=Cost(
        "max(64, N) with one input in psum; else max(64, 2N)",
        lambda r: max(
            MIN_CYCLES, r.n if "psum" in {o.memory for o in r.reads} else 2 * r.n
        ),
    ),
    limits=(
        "src, predicate: not both in psum; equal partitions and elements",
        "predicate: uint8, uint16 or uint32; src and dst: one type",
    ),
)
def tensor_copy_predicated(
    issue: Issue, dst: Tile, src: Tile, predicate: Tile
) -> Meaning:
    """Copy where the predicate is not 0; elsewhere dst keeps what it held.

    Kept elements stay unwritten if they were, and stale if they were stale.
    """
    rules.not_both_in_psum(src=src, predicate=predicate)
    rules.same_partitions(src=src, predicate=predicate, dst=dst)
    rules.same_free_size(src=src, predicate=predicate, dst=dst)
    rules.one_of("predicate", predicate, (UINT8, UINT16, UINT32), "it holds flags")
    rules.same_dtype("a predicated copy moves bits", dst=dst, src=src)

    def copied() -> Masked:
        return Masked(src.array, rules.rows(predicate) != 0)

    return copied


def _memset_cycles(r: Record) -> float:
    halves = r.rate == 2 and r.writes[0].dtype in (BFLOAT16, FLOAT16)
    return r.n / 2 if halves else max(MIN_CYCLES, r.n)


@instruction(
    engines=("vector", "gpsimd"),
    cost=Cost("max(64, N); N / 2 for zero in bfloat16 or float16", _memset_cycles),
)
def memset(issue: Issue, dst: Tile, value: float) -> Meaning:
    """Fill with a constant; integers saturate at the ends of their type.

    A fraction is first rounded, half to even, as in every write of an integer.
    """
    if dst.dtype not in INTEGERS:
        constant = rules.constant("value", value)
    elif isinstance(value, numbers.Integral):
        # subtle: not through float32, which is exact up to 2**24 only
        ends = np.iinfo(dst.dtype)
        constant = dst.dtype.type(min(max(int(value), ends.min), ends.max))
    else:
        rules.constant("value", value)
        constant = np.float64(value)
    issue.rate = 2.0 if constant == 0 else 1.0
    return lambda: np.broadcast_to(constant, dst.shape)
