"""Illegal calls of the tensor engine: products and transposes."""

import ml_dtypes
import numpy as np
from machine.refusal_cases import cases

from flashlib import (
    BankError,
    DTypeError,
    FreeSizeError,
    MachineError,
    PartitionError,
    PlacementError,
    UninitializedError,
)

case, test_refused_with_reason_and_without_effect = cases()
BF16 = ml_dtypes.bfloat16


@case(PlacementError, "stationary has memory psum", "sbuf")
def matmul_stationary_in_psum(b):
    x = b.psum(128, 16)
    y, d = b.sbuf(128, 8), b.fresh("psum", 16, 8)
    return lambda: b.isa.nc_matmul(d, x, y)


@case(PlacementError, "moving has memory hbm", "dma_copy")
def matmul_moving_in_hbm(b):
    x, y, d = b.sbuf(128, 16), b.hbm(128, 8), b.fresh("psum", 16, 8)
    return lambda: b.isa.nc_matmul(d, x, y)


@case(PlacementError, "dst has memory sbuf", "psum")
def matmul_dst_in_sbuf(b):
    x, y, d = b.sbuf(128, 16), b.sbuf(128, 8), b.fresh("sbuf", 16, 8)
    return lambda: b.isa.nc_matmul(d, x, y)


@case(PartitionError, "moving has 32 partitions", "expected 64")
def matmul_contraction_differs(b):
    x, y, d = b.sbuf(64, 16), b.sbuf(32, 8), b.fresh("psum", 16, 8)
    return lambda: b.isa.nc_matmul(d, x, y)


@case(PartitionError, "129 partitions", "at most 128")
def matmul_contraction_of_129(b):
    return lambda: b.m.sbuf.put(np.ones((129, 16), np.float32))


@case(FreeSizeError, "stationary has 129 columns", "at most 128")
def matmul_stationary_of_129(b):
    x, y, d = b.sbuf(128, 129), b.sbuf(128, 8), b.fresh("psum", 128, 8)
    return lambda: b.isa.nc_matmul(d, x, y)


@case(FreeSizeError, "moving has 513 columns", "at most 512")
def matmul_moving_of_513(b):
    x, y, d = b.sbuf(128, 128), b.sbuf(128, 513), b.fresh("psum", 128, 513)
    return lambda: b.isa.nc_matmul(d, x, y)


@case(BankError, "banks 0 to 1", "2048 bytes")
def matmul_dst_crosses_a_bank(b):
    x, y, d = b.sbuf(128, 128), b.sbuf(128, 512), b.fresh("psum", 128, 1024)
    return lambda: b.isa.nc_matmul(d[:, 256:768], x, y)


@case(DTypeError, "dst has dtype bfloat16", "expected float32")
def matmul_dst_bfloat16_before_v4(b):
    x, y = b.sbuf(128, 16), b.sbuf(128, 8)
    d = b.fresh("psum", 16, 8, dtype=BF16)
    return lambda: b.isa.nc_matmul(d, x, y)


@case(DTypeError, "stationary and moving have dtypes bfloat16 and float32")
def matmul_mixes_bfloat16_and_float32(b):
    x, y, d = b.sbuf(128, 16, dtype=BF16), b.sbuf(128, 8), b.fresh("psum", 16, 8)
    return lambda: b.isa.nc_matmul(d, x, y)


@case(DTypeError, "moving has dtype int32")
def matmul_of_integers(b):
    x, y = b.sbuf(128, 16), b.sbuf(128, 8, dtype=np.int32)
    d = b.fresh("psum", 16, 8)
    return lambda: b.isa.nc_matmul(d, x, y)


@case(PartitionError, "dst has 8 partitions", "expected 16")
def matmul_dst_of_wrong_height(b):
    x, y, d = b.sbuf(128, 16), b.sbuf(128, 8), b.fresh("psum", 8, 8)
    return lambda: b.isa.nc_matmul(d, x, y)


@case(FreeSizeError, "dst has 4 elements", "expected 8")
def matmul_dst_of_wrong_width(b):
    x, y, d = b.sbuf(128, 16), b.sbuf(128, 8), b.fresh("psum", 16, 4)
    return lambda: b.isa.nc_matmul(d, x, y)


@case(UninitializedError, "accumulate has True", "accumulate=False or None")
def matmul_accumulates_on_nothing(b):
    x, y, d = b.sbuf(128, 16), b.sbuf(128, 8), b.fresh("psum", 16, 8)
    return lambda: b.isa.nc_matmul(d, x, y, accumulate=True)


@case(MachineError, "accumulate has True", "undefined on NeuronCore-v3")
def matmul_accumulates_on_memset(b):
    x, y, d = b.sbuf(128, 16), b.sbuf(128, 8), b.fresh("psum", 16, 8)
    b.isa.memset(d, 0.0)
    return lambda: b.isa.nc_matmul(d, x, y, accumulate=True)


@case(MachineError, "undefined on NeuronCore-v2", generation=2)
def matmul_accumulates_on_a_copy(b):
    x, y, d = b.sbuf(128, 16), b.sbuf(128, 8), b.psum(16, 8)
    return lambda: b.isa.nc_matmul(d, x, y)


@case(UninitializedError, "moving has 1024 unwritten elements of 1024")
def matmul_reads_fresh_memory(b):
    x, y, d = b.sbuf(128, 16), b.fresh("sbuf", 128, 8), b.fresh("psum", 16, 8)
    return lambda: b.isa.nc_matmul(d, x, y)


@case(MachineError, "perf_mode has 'triple'", "double_row")
def matmul_unknown_mode(b):
    x, y, d = b.sbuf(128, 16), b.sbuf(128, 8), b.fresh("psum", 16, 8)
    return lambda: b.isa.nc_matmul(d, x, y, perf_mode="triple")


@case(DTypeError, "stationary has dtype float32", "float8_e4m3")
def matmul_double_row_of_float32(b):
    x, y, d = b.sbuf(128, 2, 16), b.sbuf(128, 2, 8), b.fresh("psum", 16, 8)
    return lambda: b.isa.nc_matmul(d, x, y, perf_mode="double_row")


@case(MachineError, "NeuronCore-v2", "double_row", generation=2)
def matmul_double_row_before_v3(b):
    x = b.sbuf(128, 2, 16, dtype=ml_dtypes.float8_e4m3)
    y = b.sbuf(128, 2, 8, dtype=ml_dtypes.float8_e4m3)
    d = b.fresh("psum", 16, 8)
    return lambda: b.isa.nc_matmul(d, x, y, perf_mode="double_row")


@case(MachineError, "stationary has type ndarray", "hbm or sbuf")
def matmul_of_a_numpy_array(b):
    y, d = b.sbuf(128, 8), b.fresh("psum", 16, 8)
    return lambda: b.isa.nc_matmul(d, np.ones((128, 16), np.float32), y)


@case(FreeSizeError, "128 x 129", "at most 128 x 128")
def transpose_too_large_for_the_array(b):
    x, d = b.sbuf(128, 129), b.fresh("psum", 128, 128)
    return lambda: b.isa.nc_transpose(d, x)


@case(FreeSizeError, "32 x 33", "at most 32 x 32", "vector")
def transpose_too_wide_for_the_vector_engine(b):
    x, d = b.sbuf(32, 33), b.fresh("sbuf", 33, 32)
    return lambda: b.isa.nc_transpose(d, x)


@case(PartitionError, "33 x 32", "at most 32 x 32", "vector")
def transpose_too_tall_for_the_vector_engine(b):
    x, d = b.sbuf(33, 32), b.fresh("sbuf", 32, 33)
    return lambda: b.isa.nc_transpose(d, x)


@case(DTypeError, "dst has dtype bfloat16", "expected float32")
def transpose_changes_the_type(b):
    x, d = b.sbuf(64, 16), b.fresh("psum", 16, 64, dtype=BF16)
    return lambda: b.isa.nc_transpose(d, x)


@case(PlacementError, "dst has memory sbuf", "psum")
def transpose_of_the_array_into_sbuf(b):
    x, d = b.sbuf(64, 16), b.fresh("sbuf", 16, 64)
    return lambda: b.isa.nc_transpose(d, x, engine="tensor")


@case(PlacementError, "data has memory psum", "sbuf")
def transpose_of_the_array_from_psum(b):
    x, d = b.psum(64, 16), b.fresh("psum", 16, 64)
    return lambda: b.isa.nc_transpose(d, x, engine="tensor")


@case(PartitionError, "dst has 8 partitions", "expected 16")
def transpose_into_wrong_height(b):
    x, d = b.sbuf(32, 16), b.fresh("sbuf", 8, 32)
    return lambda: b.isa.nc_transpose(d, x)


@case(FreeSizeError, "dst has 16 elements", "expected 32")
def transpose_into_wrong_width(b):
    x, d = b.sbuf(32, 16), b.fresh("sbuf", 16, 16)
    return lambda: b.isa.nc_transpose(d, x)
