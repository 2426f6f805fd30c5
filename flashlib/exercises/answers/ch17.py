"""Answers to the exercises on sums over partitions (chapter 17)."""

import ml_dtypes
import numpy as np

from flashlib.machine.machine import Machine
from flashlib.machine.tile import Tile


def _sum(
    m: Machine,
    x: Tile,
    wide: int = 128,
    dtype: object = None,
    one: float = 1.0,
    high: int | None = None,
) -> Tile:
    """Sum with a block of ones that stands still, of another size, type or value."""
    rows, columns = x.shape
    ones = m.sbuf.alloc((high or rows, wide), dtype or x.dtype)
    m.isa.memset(ones, one)
    return m.isa.nc_matmul(m.psum.alloc((wide, columns)), ones, x)


def _column(m: Machine, x: Tile) -> Tile:
    rows, columns = x.shape
    ones = m.isa.memset(m.sbuf.alloc((rows, 1), x.dtype), 1.0)
    return m.isa.nc_matmul(m.psum.alloc((columns, 1)), x, ones)


def _copied_out(m: Machine, x: Tile) -> Tile:
    return m.isa.tensor_copy(m.sbuf.alloc((128, x.shape[1])), _sum(m, x))


def _two_types(m: Machine, x: Tile) -> Tile:
    narrow = x.dtype.itemsize == 2
    return _sum(m, x, dtype=ml_dtypes.bfloat16 if narrow else np.float32)


def _cut(m: Machine, x: Tile) -> Tile:
    """Cut the ones out of a square, and write into the middle of a wider tensor."""
    rows, columns = x.shape
    square = m.isa.memset(m.sbuf.alloc((128, 128), x.dtype), 1.0)
    room = m.psum.alloc((128, 512))
    return m.isa.nc_matmul(room[:, :columns], square[:rows], x)


def _ones_from_outside(m: Machine, x: Tile) -> Tile:
    """Put the ones into SBUF without an instruction."""
    rows, columns = x.shape
    ones = m.sbuf.put(np.ones((rows, 128), x.dtype))
    return m.isa.nc_matmul(m.psum.alloc((128, columns)), ones, x)


SPREAD_WRONG = {
    "ones_from_outside": _ones_from_outside,
    "sums_in_a_column": _column,
    "sums_in_a_row": lambda m, x: _sum(m, x, wide=1),
    "as_many_ones_as_rows": lambda m, x: _sum(m, x, wide=x.shape[0]),
    "float32_ones": lambda m, x: _sum(m, x, dtype=np.float32),
    "copied_out": _copied_out,
    "mean": lambda m, x: _sum(m, x, one=1 / x.shape[0]),
    "always_128_rows": lambda m, x: _sum(m, x, high=128),
}
SPREAD_RIGHT = {"cut": _cut, "two_types": _two_types}

MOVING, STATIONARY, BESIDE = "ones moving", "ones stationary", "ones beside values"


def _whole_product(head_dim_v: int, columns: int) -> tuple[str, int]:
    if head_dim_v < 128:
        return BESIDE, max(min(64, head_dim_v + 1), columns)
    return MOVING, min(64, columns)


def _in_a_table(head_dim_v: int, columns: int) -> list:
    """Know that one more column costs a cycle only while it is what counts."""
    if head_dim_v >= 128:
        return [MOVING, np.int64(min(64, columns))]
    return [BESIDE, int(head_dim_v < 64 and columns <= head_dim_v)]


def _no_room_at_127(head_dim_v: int, columns: int) -> list:
    return _in_a_table(head_dim_v if head_dim_v < 127 else 128, columns)


CHEAP_WRONG = {
    "no_room_at_127": _no_room_at_127,
    "whole_product": _whole_product,
}
CHEAP_RIGHT = {"in_a_table": _in_a_table}
