"""Illegal copies, gathers and transposes by DMA."""

import ml_dtypes
import numpy as np
from machine.refusal_cases import cases

from flashlib import (
    DTypeError,
    FreeSizeError,
    MachineError,
    OutOfBoundsError,
    PartitionError,
    PlacementError,
    UninitializedError,
)

case, test_refused_with_reason_and_without_effect = cases()
BF16 = ml_dtypes.bfloat16


@case(PlacementError, "src has memory psum", "tensor_copy")
def dma_from_psum(b):
    x, d = b.psum(64, 8), b.fresh("hbm", 64, 8)
    return lambda: b.isa.dma_copy(d, x)


@case(PlacementError, "dst has memory psum", "write to sbuf and copy it")
def dma_into_psum(b):
    x, d = b.hbm(64, 8), b.fresh("psum", 64, 8)
    return lambda: b.isa.dma_copy(d, x)


@case(FreeSizeError, "dst has 512 elements", "expected 504")
def dma_of_unequal_sizes(b):
    x, d = b.hbm(63, 8), b.fresh("sbuf", 64, 8)
    return lambda: b.isa.dma_copy(d, x)


@case(UninitializedError, "src has 512 unwritten")
def dma_of_fresh_memory(b):
    x, d = b.fresh("hbm", 64, 8), b.fresh("sbuf", 64, 8)
    return lambda: b.isa.dma_copy(d, x)


def _gather(b, indices, dtype=np.uint32, place="sbuf", rows=4, **more):
    table = b.hbm(8, 6)
    index = getattr(b.m, place).put(np.array(indices, dtype).reshape(-1, 1))
    d = b.sbuf(rows, 6)
    mode = more.pop("oob_mode", "error")
    more.setdefault("vector_offset", index)
    return lambda: b.isa.dma_copy(d, table.ap([[6, 4], [1, 6]], **more), oob_mode=mode)


@case(OutOfBoundsError, "vector_offset has 8 at partition 2", "0 to 7", "skip")
def gather_row_8_of_8(b):
    return _gather(b, [0, 1, 8, 3])


@case(OutOfBoundsError, "4294967295 at partition 1")
def gather_row_of_all_bits(b):
    return _gather(b, [0, 0xFFFFFFFF, 2, 3])


@case(OutOfBoundsError, "vector_offset has -1")
def gather_negative_row(b):
    return _gather(b, [0, 1, 2, -1], dtype=np.int32)


@case(DTypeError, "vector_offset has dtype float32", "int32 or uint32")
def gather_by_floats(b):
    return _gather(b, [0, 1, 2, 3], dtype=np.float32)


@case(PlacementError, "vector_offset has memory hbm", "sbuf")
def gather_by_indices_in_hbm(b):
    return _gather(b, [0, 1, 2, 3], place="hbm")


@case(MachineError, "indirect_dim has 1", "expected 0")
def gather_along_columns(b):
    return _gather(b, [0, 1, 2, 3], indirect_dim=1)


@case(
    MachineError,
    "vector_offset and scalar_offset",
    "have one value each; expected one of the two",
)
def gather_by_two_offsets(b):
    return _gather(b, [0, 1, 2, 3], scalar_offset=1)


@case(PartitionError, r"vector_offset has shape \(3, 1\)", r"\(4, 1\)")
def gather_by_too_few_indices(b):
    return _gather(b, [0, 1, 2])


@case(MachineError, "oob_mode has 'wrap'", "error")
def gather_unknown_mode(b):
    return _gather(b, [0, 1, 2, 3], oob_mode="wrap")


@case(PlacementError, "src has memory sbuf", "hbm")
def gather_from_sbuf(b):
    table, d = b.sbuf(8, 6), b.sbuf(4, 6)
    index = b.m.sbuf.put(np.zeros((4, 1), np.uint32))
    return lambda: b.isa.dma_copy(d, table.ap([[6, 4], [1, 6]], vector_offset=index))


@case(FreeSizeError, "dst has 36 elements", "expected 24")
def gather_into_more_elements(b):
    return _gather(b, [0, 1, 2, 3], rows=6)


@case(OutOfBoundsError, "scalar_offset has 5")
def gather_moved_outside(b):
    table, d = b.hbm(8, 6), b.sbuf(4, 6)
    return lambda: b.isa.dma_copy(d, table.ap([[6, 4], [1, 6]], scalar_offset=5))


@case(FreeSizeError, "scalar_offset has 2 elements")
def gather_moved_by_two_numbers(b):
    table, d = b.hbm(8, 6), b.sbuf(4, 6)
    offset = b.m.sbuf.put(np.zeros((1, 2), np.uint32))
    return lambda: b.isa.dma_copy(d, table.ap([[6, 4], [1, 6]], scalar_offset=offset))


@case(UninitializedError, "gathered row")
def gather_of_fresh_rows(b):
    table, d = b.fresh("hbm", 8, 6), b.sbuf(4, 6)
    index = b.m.sbuf.put(np.zeros((4, 1), np.uint32))
    return lambda: b.isa.dma_copy(d, table.ap([[6, 4], [1, 6]], vector_offset=index))


@case(UninitializedError, "vector_offset has 1 unwritten elements of 4")
def gather_by_a_fresh_index(b):
    table, d, index = b.hbm(8, 6), b.sbuf(4, 6), b.fresh("sbuf", 4, 1, dtype=np.uint32)
    b.isa.memset(index[:3], 1)
    return lambda: b.isa.dma_copy(d, table.ap([[6, 4], [1, 6]], vector_offset=index))


@case(UninitializedError, "scalar_offset has 1 unwritten elements of 1")
def gather_moved_by_a_fresh_number(b):
    table, d, offset = b.hbm(8, 6), b.sbuf(4, 6), b.fresh("sbuf", 1, 1, dtype=np.int32)
    return lambda: b.isa.dma_copy(d, table.ap([[6, 4], [1, 6]], scalar_offset=offset))


@case(PlacementError, "dst has memory hbm", "write to sbuf and store it")
def dma_transpose_into_hbm(b):
    x, d = b.hbm(64, 8), b.fresh("hbm", 8, 64)
    return lambda: b.isa.dma_transpose(d, x)


@case(DTypeError, "dst has dtype bfloat16", "float32")
def dma_transpose_changes_the_type(b):
    x, d = b.hbm(64, 8), b.fresh("sbuf", 8, 64, dtype=BF16)
    return lambda: b.isa.dma_transpose(d, x)


@case(DTypeError, "1 bytes", "2 or 4")
def dma_transpose_of_bytes(b):
    x, d = b.hbm(64, 8, dtype=np.uint8), b.fresh("sbuf", 8, 64, dtype=np.uint8)
    return lambda: b.isa.dma_transpose(d, x)


@case(FreeSizeError, r"axes has \(0, 1\)", r"\(1, 0\)")
def dma_transpose_other_axes(b):
    x, d = b.hbm(64, 8), b.fresh("sbuf", 8, 64)
    return lambda: b.isa.dma_transpose(d, x, axes=(0, 1))


@case(FreeSizeError, "ranks")
def dma_transpose_to_another_rank(b):
    x, d = b.hbm(64, 8), b.fresh("sbuf", 8, 64, 1)
    return lambda: b.isa.dma_transpose(d, x)


@case(PartitionError, "dst has 16 partitions", "expected 8")
def dma_transpose_to_another_height(b):
    x, d = b.hbm(64, 8), b.fresh("sbuf", 16, 64)
    return lambda: b.isa.dma_transpose(d, x)


@case(MachineError, "NeuronCore-v2", "nc_transpose", generation=2)
def dma_transpose_before_v3(b):
    x, d = b.hbm(64, 8), b.fresh("sbuf", 8, 64)
    return lambda: b.isa.dma_transpose(d, x)


def _gather_transpose(b, count=32, width=8, height=32, columns=1, **kind):
    dtype, table_dtype = kind.get("index", np.uint32), kind.get("table", BF16)
    table = b.hbm(64, width, dtype=table_dtype)
    index = b.m.sbuf.put(np.zeros((height, columns), dtype))
    d = b.fresh("sbuf", min(width, 128), count, dtype=table_dtype)
    src = table.ap([[width, count], [1, min(width, 128)]], vector_offset=index)
    return lambda: b.isa.dma_transpose(d, src)


@case(DTypeError, "4 bytes", "expected 2")
def gather_transpose_of_float32(b):
    return _gather_transpose(b, table=np.float32)


@case(DTypeError, "vector_offset has dtype int32", "uint32")
def gather_transpose_by_signed_indices(b):
    return _gather_transpose(b, index=np.int32)


@case(FreeSizeError, "divisible by 16")
def gather_transpose_of_24_rows(b):
    return _gather_transpose(b, count=24)


@case(PartitionError, "vector_offset has shape", "16 to 128")
def gather_transpose_by_24_indices(b):
    return _gather_transpose(b, count=16, height=24)


@case(PartitionError, "at least 32 indices")
def gather_transpose_by_too_few_indices(b):
    return _gather_transpose(b, count=32, height=16)


@case(PartitionError, "128 for several columns")
def gather_transpose_by_short_columns(b):
    return _gather_transpose(b, count=64, height=32, columns=2)


@case(UninitializedError, "vector_offset has 32 unwritten elements of 32")
def gather_transpose_by_fresh_indices(b):
    table, d = b.hbm(64, 8, dtype=BF16), b.fresh("sbuf", 8, 32, dtype=BF16)
    index = b.fresh("sbuf", 32, 1, dtype=np.uint32)
    src = table.ap([[8, 32], [1, 8]], vector_offset=index)
    return lambda: b.isa.dma_transpose(d, src)


@case(FreeSizeError, "size 1 on axis 1 or 2")
def gather_transpose_of_a_full_4d_source(b):
    table = b.hbm(64, 2, 3, 8, dtype=BF16)
    index = b.m.sbuf.put(np.zeros((32, 1), np.uint32))
    d = b.fresh("sbuf", 8, 2, 3, 32, dtype=BF16)
    src = table.ap([[48, 32], [24, 2], [8, 3], [1, 8]], vector_offset=index)
    return lambda: b.isa.dma_transpose(d, src)


@case(MachineError, "vector_offset has None")
def gather_transpose_by_one_offset(b):
    table, d = b.hbm(64, 8, dtype=BF16), b.fresh("sbuf", 8, 32, dtype=BF16)
    src = table.ap([[8, 32], [1, 8]], scalar_offset=1)
    return lambda: b.isa.dma_transpose(d, src)
