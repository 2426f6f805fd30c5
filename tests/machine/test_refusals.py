"""Every "must raise on" of the instruction tables: one test each.

A case sets operands up and returns the illegal call. The message names the limit
and the value; nothing has changed and nothing is traced.
"""

import ml_dtypes
import numpy as np
import pytest

import flashlib
from flashlib.machine import Machine

BF16 = ml_dtypes.bfloat16
CASES = []


def case(error, *words, generation=3):
    """Register one illegal program."""

    def keep(setup):
        CASES.append(pytest.param(setup, error, words, generation, id=setup.__name__))
        return setup

    return keep


@pytest.mark.parametrize("setup, error, words, generation", CASES)
def test_refused_with_reason_and_without_effect(
    bench_of, setup, error, words, generation
):
    b = bench_of(generation)
    call = setup(b)
    with b.refuses(error, *words):
        call()


PartitionError = flashlib.PartitionError
FreeSizeError = flashlib.FreeSizeError
PlacementError = flashlib.PlacementError
BankError = flashlib.BankError
OutOfBoundsError = flashlib.OutOfBoundsError
UninitializedError = flashlib.UninitializedError
MachineError = flashlib.MachineError
DTypeError = flashlib.DTypeError
CapacityError = flashlib.CapacityError


# -- nc_matmul ------------------------------------------------------------------


@case(PlacementError, "stationary is in psum", "sbuf")
def matmul_stationary_in_psum(b):
    x = b.psum(128, 16)
    y, d = b.sbuf(128, 8), b.fresh("psum", 16, 8)
    return lambda: b.isa.nc_matmul(d, x, y)


@case(PlacementError, "moving is in hbm", "dma_copy")
def matmul_moving_in_hbm(b):
    x, y, d = b.sbuf(128, 16), b.hbm(128, 8), b.fresh("psum", 16, 8)
    return lambda: b.isa.nc_matmul(d, x, y)


@case(PlacementError, "dst is in sbuf", "psum")
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


@case(DTypeError, "dst is bfloat16", "expected float32")
def matmul_dst_bfloat16_before_v4(b):
    x, y = b.sbuf(128, 16), b.sbuf(128, 8)
    d = b.fresh("psum", 16, 8, dtype=BF16)
    return lambda: b.isa.nc_matmul(d, x, y)


@case(DTypeError, "stationary is bfloat16 and moving is float32")
def matmul_mixes_bfloat16_and_float32(b):
    x, y, d = b.sbuf(128, 16, dtype=BF16), b.sbuf(128, 8), b.fresh("psum", 16, 8)
    return lambda: b.isa.nc_matmul(d, x, y)


@case(DTypeError, "moving is int32")
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


@case(UninitializedError, "accumulate is True", "accumulate=False or None")
def matmul_accumulates_on_nothing(b):
    x, y, d = b.sbuf(128, 16), b.sbuf(128, 8), b.fresh("psum", 16, 8)
    return lambda: b.isa.nc_matmul(d, x, y, accumulate=True)


@case(MachineError, "accumulate is True", "undefined on NeuronCore-v3")
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


@case(MachineError, "perf_mode is 'triple'", "double_row")
def matmul_unknown_mode(b):
    x, y, d = b.sbuf(128, 16), b.sbuf(128, 8), b.fresh("psum", 16, 8)
    return lambda: b.isa.nc_matmul(d, x, y, perf_mode="triple")


@case(DTypeError, "stationary is float32", "float8_e4m3")
def matmul_double_row_of_float32(b):
    x, y, d = b.sbuf(128, 2, 16), b.sbuf(128, 2, 8), b.fresh("psum", 16, 8)
    return lambda: b.isa.nc_matmul(d, x, y, perf_mode="double_row")


@case(MachineError, "NeuronCore-v2", "double_row", generation=2)
def matmul_double_row_before_v3(b):
    x = b.sbuf(128, 2, 16, dtype=ml_dtypes.float8_e4m3)
    y = b.sbuf(128, 2, 8, dtype=ml_dtypes.float8_e4m3)
    d = b.fresh("psum", 16, 8)
    return lambda: b.isa.nc_matmul(d, x, y, perf_mode="double_row")


@case(MachineError, "stationary is a ndarray", "hbm or sbuf")
def matmul_of_a_numpy_array(b):
    y, d = b.sbuf(128, 8), b.fresh("psum", 16, 8)
    return lambda: b.isa.nc_matmul(d, np.ones((128, 16), np.float32), y)


# -- nc_transpose ---------------------------------------------------------------


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


@case(DTypeError, "dst is bfloat16", "expected float32")
def transpose_changes_the_type(b):
    x, d = b.sbuf(64, 16), b.fresh("psum", 16, 64, dtype=BF16)
    return lambda: b.isa.nc_transpose(d, x)


@case(PlacementError, "dst is in sbuf", "psum")
def transpose_of_the_array_into_sbuf(b):
    x, d = b.sbuf(64, 16), b.fresh("sbuf", 16, 64)
    return lambda: b.isa.nc_transpose(d, x, engine="tensor")


@case(PlacementError, "data is in psum", "sbuf")
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


# -- tensor_tensor, tensor_scalar, scalar_tensor_tensor -------------------------


@case(PlacementError, "data1 and data2 are in psum", "one operand")
def tensor_tensor_both_in_psum(b):
    x, y, d = b.psum(64, 8), b.psum(64, 8), b.fresh("sbuf", 64, 8)
    return lambda: b.isa.tensor_tensor(d, x, y, "add")


@case(PartitionError, "data2 has 32 partitions", "expected 64")
def tensor_tensor_of_different_heights(b):
    x, y, d = b.sbuf(64, 8), b.sbuf(32, 8), b.fresh("sbuf", 64, 8)
    return lambda: b.isa.tensor_tensor(d, x, y, "add")


@case(FreeSizeError, "data2 has 4 elements", "expected 8", "broadcast_to")
def tensor_tensor_of_different_widths(b):
    x, y, d = b.sbuf(64, 8), b.sbuf(64, 4), b.fresh("sbuf", 64, 8)
    return lambda: b.isa.tensor_tensor(d, x, y, "add")


@case(MachineError, "op is 'plus'", "add, subtract")
def tensor_tensor_unknown_operator(b):
    x, d = b.sbuf(64, 8), b.fresh("sbuf", 64, 8)
    return lambda: b.isa.tensor_tensor(d, x, x, "plus")


@case(DTypeError, "float32", "bit operators take integers")
def tensor_tensor_bits_of_floats(b):
    x, d = b.sbuf(64, 8), b.fresh("sbuf", 64, 8)
    return lambda: b.isa.tensor_tensor(d, x, x, "bitwise_and")


@case(MachineError, "power", "gpsimd")
def tensor_tensor_power_on_the_vector_engine(b):
    x, d = b.sbuf(64, 8), b.fresh("sbuf", 64, 8)
    return lambda: b.isa.tensor_tensor(d, x, x, "power", engine="vector")


@case(PlacementError, "data1 is in psum", "gpsimd engine has no port")
def tensor_tensor_on_gpsimd_with_psum(b):
    x, y, d = b.psum(64, 8), b.sbuf(64, 8), b.fresh("sbuf", 64, 8)
    return lambda: b.isa.tensor_tensor(d, x, y, "add", engine="gpsimd")


@case(PlacementError, "engine is 'tensor'", "vector or gpsimd")
def tensor_tensor_on_the_tensor_engine(b):
    x, d = b.sbuf(64, 8), b.fresh("sbuf", 64, 8)
    return lambda: b.isa.tensor_tensor(d, x, x, "add", engine="tensor")


@case(DTypeError, "operand0 is bfloat16", "expected float32")
def tensor_scalar_operand_not_float32(b):
    x, s, d = b.sbuf(64, 8), b.sbuf(64, 1, dtype=BF16), b.fresh("sbuf", 64, 8)
    return lambda: b.isa.tensor_scalar(d, x, "multiply", s)


@case(FreeSizeError, "operand0 has 8 elements", "expected 1")
def tensor_scalar_operand_not_a_column(b):
    x, s, d = b.sbuf(64, 8), b.sbuf(64, 8), b.fresh("sbuf", 64, 8)
    return lambda: b.isa.tensor_scalar(d, x, "multiply", s)


@case(PartitionError, "operand1 has 32 partitions", "expected 64")
def tensor_scalar_operand_of_other_height(b):
    x, s, d = b.sbuf(64, 8), b.sbuf(32, 1), b.fresh("sbuf", 64, 8)
    return lambda: b.isa.tensor_scalar(d, x, "multiply", 2.0, op1="add", operand1=s)


@case(MachineError, "op0 is 'bitwise_and' and op1 is 'add'", "two arithmetic or two")
def tensor_scalar_mixes_bits_and_arithmetic(b):
    x = b.sbuf(64, 8, dtype=np.int32)
    d = b.fresh("sbuf", 64, 8, dtype=np.int32)
    return lambda: b.isa.tensor_scalar(d, x, "bitwise_and", 1, op1="add", operand1=1.0)


@case(MachineError, "subtract on the scalar engine", "multiply then add")
def tensor_scalar_subtracts_on_the_scalar_engine(b):
    x, d = b.sbuf(64, 8), b.fresh("sbuf", 64, 8)
    return lambda: b.isa.tensor_scalar(d, x, "subtract", 1.0, engine="scalar")


@case(MachineError, "op0 is 'add' on the gpsimd engine", "rsqrt")
def tensor_scalar_adds_on_gpsimd(b):
    x, d = b.sbuf(64, 8), b.fresh("sbuf", 64, 8)
    return lambda: b.isa.tensor_scalar(d, x, "add", 1.0, engine="gpsimd")


@case(MachineError, "operand0 is a list", "number or a tensor")
def tensor_scalar_operand_a_list(b):
    x, d = b.sbuf(64, 8), b.fresh("sbuf", 64, 8)
    return lambda: b.isa.tensor_scalar(d, x, "add", [1.0, 2.0])


@case(MachineError, "integer constant")
def tensor_scalar_bits_with_a_float(b):
    x = b.sbuf(64, 8, dtype=np.int32)
    d = b.fresh("sbuf", 64, 8, dtype=np.int32)
    return lambda: b.isa.tensor_scalar(d, x, "bitwise_and", 1.5)


@case(PlacementError, "data and operand1 are in psum")
def scalar_tensor_tensor_both_in_psum(b):
    x, y, d = b.psum(64, 8), b.psum(64, 8), b.fresh("sbuf", 64, 8)
    return lambda: b.isa.scalar_tensor_tensor(d, x, "multiply", 2.0, "add", y)


@case(MachineError, "op0 is 'bitwise_or'")
def scalar_tensor_tensor_of_bits(b):
    x, d = b.sbuf(64, 8), b.fresh("sbuf", 64, 8)
    return lambda: b.isa.scalar_tensor_tensor(d, x, "bitwise_or", 2, "add", x)


# -- reductions -----------------------------------------------------------------


@case(PartitionError, "axis is 0", "free axes", "ones")
def reduce_over_partitions(b):
    x, d = b.sbuf(64, 8), b.fresh("sbuf", 64, 1)
    return lambda: b.isa.tensor_reduce(d, "add", x, axis=0)


@case(FreeSizeError, "axis is 1", "last axes", "permute")
def reduce_over_an_inner_axis(b):
    x, d = b.sbuf(64, 4, 8), b.fresh("sbuf", 64, 8)
    return lambda: b.isa.tensor_reduce(d, "add", x, axis=1)


@case(FreeSizeError, r"axis is \(1, 3\)")
def reduce_over_separate_axes(b):
    x, d = b.sbuf(64, 4, 8, 2), b.fresh("sbuf", 64, 8)
    return lambda: b.isa.tensor_reduce(d, "add", x, axis=(1, 3))


@case(MachineError, "op is 'divide'", "maximum")
def reduce_by_division(b):
    x, d = b.sbuf(64, 8), b.fresh("sbuf", 64, 1)
    return lambda: b.isa.tensor_reduce(d, "divide", x, axis=1)


@case(FreeSizeError, "dst has 2 elements", "expected 4")
def reduce_into_wrong_width(b):
    x, d = b.sbuf(64, 4, 8), b.fresh("sbuf", 64, 2)
    return lambda: b.isa.tensor_reduce(d, "add", x, axis=2)


@case(MachineError, "negate", "bits have no sign")
def reduce_bits_and_negate(b):
    x = b.sbuf(64, 8, dtype=np.int32)
    d = b.fresh("sbuf", 64, 1, dtype=np.int32)
    return lambda: b.isa.tensor_reduce(d, "bitwise_or", x, axis=1, negate=True)


@case(FreeSizeError, "reduce_res has 8 elements", "expected 1")
def scalar_reduce_result_not_a_column(b):
    x, d, r = b.sbuf(64, 8), b.fresh("sbuf", 64, 8), b.fresh("sbuf", 64, 8)
    return lambda: b.isa.tensor_scalar_reduce(d, x, "multiply", 1.0, "add", r)


@case(MachineError, "reduce_op is 'subtract'")
def scalar_reduce_by_subtraction(b):
    x, d, r = b.sbuf(64, 8), b.fresh("sbuf", 64, 8), b.fresh("sbuf", 64, 1)
    return lambda: b.isa.tensor_scalar_reduce(d, x, "multiply", 1.0, "subtract", r)


# -- copies ---------------------------------------------------------------------


@case(PlacementError, "src is in psum", "gpsimd")
def copy_from_psum_on_gpsimd(b):
    x, d = b.psum(64, 8), b.fresh("sbuf", 64, 8)
    return lambda: b.isa.tensor_copy(d, x, engine="gpsimd")


@case(PartitionError, "dst has 32 partitions", "expected 64")
def copy_to_another_height(b):
    x, d = b.sbuf(64, 8), b.fresh("sbuf", 32, 8)
    return lambda: b.isa.tensor_copy(d, x)


@case(MachineError, "NeuronCore-v2", "activation", generation=2)
def copy_on_the_scalar_engine_before_v3(b):
    x, d = b.sbuf(64, 8), b.fresh("sbuf", 64, 8)
    return lambda: b.isa.tensor_copy(d, x, engine="scalar")


@case(PartitionError, "starts at partition 16", "32 partitions", "multiple of 32")
def copy_from_partition_16(b):
    x, d = b.sbuf(128, 8), b.fresh("sbuf", 32, 8)
    return lambda: b.isa.tensor_copy(d, x[16:48])


@case(PartitionError, "starts at partition 32", "96 partitions")
def copy_96_partitions_from_32(b):
    x, d = b.sbuf(128, 8), b.fresh("sbuf", 96, 8)
    return lambda: b.isa.tensor_copy(d, x[32:128])


@case(PartitionError, "starts at partition 32", "64 partitions", "0, 64")
def copy_64_partitions_to_32(b):
    x, d = b.sbuf(64, 8), b.fresh("sbuf", 128, 8)
    return lambda: b.isa.tensor_copy(d[32:96], x)


@case(OutOfBoundsError, "slice 32:160", "128 elements")
def copy_128_partitions_from_32(b):
    x, d = b.sbuf(128, 8), b.fresh("sbuf", 128, 8)
    return lambda: b.isa.tensor_copy(d, x[32:160])


@case(PlacementError, "src and predicate are in psum")
def predicated_both_in_psum(b):
    x, p, d = b.psum(64, 8), b.psum(64, 8, dtype=np.uint8), b.sbuf(64, 8)
    return lambda: b.isa.tensor_copy_predicated(d, x, p)


@case(DTypeError, "predicate is float32", "uint8")
def predicated_by_floats(b):
    x, d = b.sbuf(64, 8), b.sbuf(64, 8)
    return lambda: b.isa.tensor_copy_predicated(d, x, b.tiles[0])


@case(DTypeError, "src is float32", "expected bfloat16")
def predicated_changes_the_type(b):
    x, p = b.sbuf(64, 8), b.sbuf(64, 8, dtype=np.uint8)
    d = b.sbuf(64, 8, dtype=BF16)
    return lambda: b.isa.tensor_copy_predicated(d, x, p)


@case(FreeSizeError, "predicate has 4 elements", "expected 8")
def predicated_by_too_few_flags(b):
    x, p, d = b.sbuf(64, 8), b.sbuf(64, 4, dtype=np.uint8), b.sbuf(64, 8)
    return lambda: b.isa.tensor_copy_predicated(d, x, p)


@case(PlacementError, "dst is in psum", "gpsimd")
def memset_psum_on_gpsimd(b):
    d = b.fresh("psum", 64, 8)
    return lambda: b.isa.memset(d, 0.0, engine="gpsimd")


@case(FreeSizeError, "repeats elements", "each element once")
def memset_a_broadcast(b):
    d = b.sbuf(64, 1).broadcast_to((64, 8))
    return lambda: b.isa.memset(d, 0.0)


@case(FreeSizeError, "65537 elements", "at most 65536")
def memset_more_than_64k_elements(b):
    d = b.fresh("sbuf", 1, 65537, dtype=np.uint8)
    return lambda: b.isa.memset(d, 0)


@case(FreeSizeError, "4097 elements", "at most 4096", "psum")
def memset_more_than_4k_elements_of_psum(b):
    d = b.fresh("psum", 1, 4097, dtype=np.uint8)
    return lambda: b.isa.memset(d, 0)


@case(FreeSizeError, "5 free axes", "at most 4")
def copy_with_five_axes(b):
    x, d = b.sbuf(8, 4, 4, 4, 4, 4), b.fresh("sbuf", 8, 32)
    return lambda: b.isa.tensor_copy(d, x[:, ::2, ::2, ::2, ::2, ::2])


@case(PlacementError, "src has been freed")
def copy_a_freed_tensor(b):
    x, d = b.m.sbuf.put(np.ones((64, 8), np.float32)), b.fresh("sbuf", 64, 8)
    x.free()
    return lambda: b.isa.tensor_copy(d, x)


@case(PlacementError, "src belongs to another core", "sendrecv")
def copy_from_another_machine(b):
    x, d = Machine().sbuf.put(np.ones((64, 8), np.float32)), b.fresh("sbuf", 64, 8)
    return lambda: b.isa.tensor_copy(d, x)


# -- scalar engine --------------------------------------------------------------


@case(FreeSizeError, "bias has 8 elements", "expected 1")
def activation_bias_not_a_column(b):
    x, s, d = b.sbuf(64, 8), b.sbuf(64, 8), b.fresh("sbuf", 64, 8)
    return lambda: b.isa.activation(d, "exp", x, bias=s)


@case(DTypeError, "scale is bfloat16", "float32")
def activation_scale_not_float32(b):
    x, s, d = b.sbuf(64, 8), b.sbuf(64, 1, dtype=BF16), b.fresh("sbuf", 64, 8)
    return lambda: b.isa.activation(d, "exp", x, scale=s)


@case(PartitionError, "scale has 32 partitions")
def activation_scale_of_other_height(b):
    x, s, d = b.sbuf(64, 8), b.sbuf(32, 1), b.fresh("sbuf", 64, 8)
    return lambda: b.isa.activation(d, "exp", x, scale=s)


@case(MachineError, "constant bias", "NeuronCore-v2", generation=2)
def activation_constant_bias_before_v3(b):
    x, d = b.sbuf(64, 8), b.fresh("sbuf", 64, 8)
    return lambda: b.isa.activation(d, "exp", x, bias=1.0)


@case(MachineError, "op is 'cosh'", "exp")
def activation_unknown_function(b):
    x, d = b.sbuf(64, 8), b.fresh("sbuf", 64, 8)
    return lambda: b.isa.activation(d, "cosh", x)


@case(MachineError, "reduce_op is 'maximum'", "add")
def activation_reduce_by_maximum(b):
    x, d, r = b.sbuf(64, 8), b.fresh("sbuf", 64, 8), b.fresh("sbuf", 64, 1)
    return lambda: b.isa.activation_reduce(d, "exp", x, "maximum", r)


@case(MachineError, "reduce_cmd is 'load'", "reset_reduce")
def activation_unknown_command(b):
    x, d = b.sbuf(64, 8), b.fresh("sbuf", 64, 8)
    return lambda: b.isa.activation(d, "exp", x, reduce_op="add", reduce_cmd="load")


@case(UninitializedError, "sum registers", "reset")
def activation_sums_without_reset(b):
    x, d, r = b.sbuf(64, 8), b.fresh("sbuf", 64, 8), b.fresh("sbuf", 64, 1)
    return lambda: b.isa.activation(
        d, "exp", x, reduce_op="add", reduce_res=r, reduce_cmd="reduce"
    )


# -- gpsimd ---------------------------------------------------------------------


@case(FreeSizeError, "pattern has 6 elements", "expected 8")
def iota_pattern_of_another_size(b):
    d = b.fresh("sbuf", 64, 8)
    return lambda: b.isa.iota(d, [[2, 3], [1, 2]])


@case(FreeSizeError, "1 to 4 pairs")
def iota_pattern_of_five_axes(b):
    d = b.fresh("sbuf", 64, 32)
    return lambda: b.isa.iota(d, [[1, 2]] * 5)


@case(PlacementError, "dst is in psum", "sbuf")
def iota_into_psum(b):
    d = b.fresh("psum", 64, 8)
    return lambda: b.isa.iota(d, [[1, 8]])


@case(PlacementError, "on_true_tile is in psum")
def affine_select_from_psum(b):
    x, d = b.psum(64, 8), b.fresh("sbuf", 64, 8)
    return lambda: b.isa.affine_select(d, [[1, 8]], 1, x, 0.0)


@case(PlacementError, "dst is in psum")
def affine_select_into_psum(b):
    x, d = b.sbuf(64, 8), b.fresh("psum", 64, 8)
    return lambda: b.isa.affine_select(d, [[1, 8]], 1, x, 0.0)


@case(FreeSizeError, "pattern has 4 elements", "expected 8")
def affine_select_pattern_of_another_size(b):
    x, d = b.sbuf(64, 8), b.fresh("sbuf", 64, 8)
    return lambda: b.isa.affine_select(d, [[1, 4]], 1, x, 0.0)


@case(MachineError, "cmp_op is 'add'", "greater_equal")
def affine_select_by_addition(b):
    x, d = b.sbuf(64, 8), b.fresh("sbuf", 64, 8)
    return lambda: b.isa.affine_select(d, [[1, 8]], 1, x, 0.0, cmp_op="add")


# -- selects and shuffle --------------------------------------------------------


def _range(b, bound=None, generation=3, **more):
    x, d = b.sbuf(64, 8), b.fresh("sbuf", 64, 8)
    low = b.sbuf(64, 1) if bound is None else bound
    high = b.sbuf(64, 1)
    return lambda: b.isa.range_select(d, x, "greater_equal", "less", low, high, **more)


@case(MachineError, "on_false_value is 0.0", "-3.4028234663852886e.38")
def range_select_other_fill(b):
    return _range(b, on_false_value=0.0)


@case(MachineError, "range_start is 16777209", "float32")
def range_select_index_of_2_to_24(b):
    return _range(b, range_start=2**24 - 7)


@case(DTypeError, "bound0 is bfloat16", "float32")
def range_select_bound_not_float32(b):
    return _range(b, bound=b.sbuf(64, 1, dtype=BF16))


@case(FreeSizeError, "bound0 has 8 elements")
def range_select_bound_not_a_column(b):
    return _range(b, bound=b.sbuf(64, 8))


@case(MachineError, "NeuronCore-v2", "range_select", generation=2)
def range_select_before_v3(b):
    return _range(b)


@case(MachineError, "reduce_op is 'add'", "maximum")
def range_select_sums(b):
    return _range(b, reduce_op="add")


@case(PlacementError, "on_true and predicate are in psum")
def select_reduce_both_in_psum(b):
    x, p, d = b.psum(64, 8), b.psum(64, 8, dtype=np.uint8), b.fresh("sbuf", 64, 8)
    return lambda: b.isa.select_reduce(d, p, x, 0.0)


@case(DTypeError, "on_true is int32")
def select_reduce_of_wide_integers(b):
    x, p = b.sbuf(64, 8, dtype=np.int32), b.sbuf(64, 8, dtype=np.uint8)
    d = b.fresh("sbuf", 64, 8)
    return lambda: b.isa.select_reduce(d, p, x, 0.0)


def _shuffle(b, src_rows, dst_rows, mask=None, dtype=np.float32):
    x = b.sbuf(128, 8)
    d = b.sbuf(128, 8, dtype=dtype)
    mask = list(range(32)) if mask is None else mask
    return lambda: b.isa.nc_stream_shuffle(d[dst_rows], x[src_rows], mask)


@case(PartitionError, "starts at partition 32", "96")
def shuffle_96_from_32(b):
    return _shuffle(b, slice(32, 128), slice(0, 96))


@case(PartitionError, "dst starts at partition 32", "64")
def shuffle_64_to_32(b):
    return _shuffle(b, slice(0, 64), slice(32, 96))


@case(PartitionError, "src starts at partition 16", "32")
def shuffle_32_from_16(b):
    return _shuffle(b, slice(16, 48), slice(0, 32))


@case(DTypeError, "dst is bfloat16", "float32")
def shuffle_changes_the_type(b):
    return _shuffle(b, slice(0, 32), slice(0, 32), dtype=BF16)


@case(FreeSizeError, "32 integers")
def shuffle_mask_of_31(b):
    return _shuffle(b, slice(0, 32), slice(0, 32), mask=[0] * 31)


@case(OutOfBoundsError, "0 to 31, or 255")
def shuffle_row_32(b):
    return _shuffle(b, slice(0, 32), slice(0, 32), mask=[32] + [0] * 31)


@case(OutOfBoundsError, "row 1 of src", "0 to 0")
def shuffle_row_that_src_lacks(b):
    return _shuffle(b, slice(0, 1), slice(0, 32), mask=[1] + [0] * 31)


# -- dma ------------------------------------------------------------------------


@case(PlacementError, "src is in psum", "tensor_copy")
def dma_from_psum(b):
    x, d = b.psum(64, 8), b.fresh("hbm", 64, 8)
    return lambda: b.isa.dma_copy(d, x)


@case(PlacementError, "dst is in psum")
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


@case(OutOfBoundsError, "vector_offset is 8 at partition 2", "0 to 7", "skip")
def gather_row_8_of_8(b):
    return _gather(b, [0, 1, 8, 3])


@case(OutOfBoundsError, "4294967295 at partition 1")
def gather_row_of_all_bits(b):
    return _gather(b, [0, 0xFFFFFFFF, 2, 3])


@case(OutOfBoundsError, "vector_offset is -1")
def gather_negative_row(b):
    return _gather(b, [0, 1, 2, -1], dtype=np.int32)


@case(DTypeError, "vector_offset is float32", "int32 or uint32")
def gather_by_floats(b):
    return _gather(b, [0, 1, 2, 3], dtype=np.float32)


@case(PlacementError, "vector_offset is in hbm", "sbuf")
def gather_by_indices_in_hbm(b):
    return _gather(b, [0, 1, 2, 3], place="hbm")


@case(MachineError, "indirect_dim is 1", "expected 0")
def gather_along_columns(b):
    return _gather(b, [0, 1, 2, 3], indirect_dim=1)


@case(MachineError, "vector_offset and scalar_offset", "one of them")
def gather_by_two_offsets(b):
    return _gather(b, [0, 1, 2, 3], scalar_offset=1)


@case(PartitionError, r"vector_offset has shape \(3, 1\)", r"\(4, 1\)")
def gather_by_too_few_indices(b):
    return _gather(b, [0, 1, 2])


@case(MachineError, "oob_mode is 'wrap'", "error")
def gather_unknown_mode(b):
    return _gather(b, [0, 1, 2, 3], oob_mode="wrap")


@case(PlacementError, "src is in sbuf", "hbm")
def gather_from_sbuf(b):
    table, d = b.sbuf(8, 6), b.sbuf(4, 6)
    index = b.m.sbuf.put(np.zeros((4, 1), np.uint32))
    return lambda: b.isa.dma_copy(d, table.ap([[6, 4], [1, 6]], vector_offset=index))


@case(FreeSizeError, "dst has 36 elements", "expected 24")
def gather_into_more_elements(b):
    return _gather(b, [0, 1, 2, 3], rows=6)


@case(OutOfBoundsError, "scalar_offset is 5")
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


@case(PlacementError, "dst is in hbm", "sbuf")
def dma_transpose_into_hbm(b):
    x, d = b.hbm(64, 8), b.fresh("hbm", 8, 64)
    return lambda: b.isa.dma_transpose(d, x)


@case(DTypeError, "dst is bfloat16", "float32")
def dma_transpose_changes_the_type(b):
    x, d = b.hbm(64, 8), b.fresh("sbuf", 8, 64, dtype=BF16)
    return lambda: b.isa.dma_transpose(d, x)


@case(DTypeError, "1 bytes", "2 or 4")
def dma_transpose_of_bytes(b):
    x, d = b.hbm(64, 8, dtype=np.uint8), b.fresh("sbuf", 8, 64, dtype=np.uint8)
    return lambda: b.isa.dma_transpose(d, x)


@case(FreeSizeError, r"axes is \(0, 1\)", r"\(1, 0\)")
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


@case(DTypeError, "vector_offset is int32", "uint32")
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


@case(FreeSizeError, "size 1 on axis 1 or 2")
def gather_transpose_of_a_full_4d_source(b):
    table = b.hbm(64, 2, 3, 8, dtype=BF16)
    index = b.m.sbuf.put(np.zeros((32, 1), np.uint32))
    d = b.fresh("sbuf", 8, 2, 3, 32, dtype=BF16)
    src = table.ap([[48, 32], [24, 2], [8, 3], [1, 8]], vector_offset=index)
    return lambda: b.isa.dma_transpose(d, src)


@case(MachineError, "vector_offset is None")
def gather_transpose_by_one_offset(b):
    table, d = b.hbm(64, 8, dtype=BF16), b.fresh("sbuf", 8, 32, dtype=BF16)
    src = table.ap([[8, 32], [1, 8]], scalar_offset=1)
    return lambda: b.isa.dma_transpose(d, src)


# -- pairs ----------------------------------------------------------------------


@case(MachineError, "single core", "lnc=2")
def sendrecv_on_a_single_core(b):
    x, d = b.sbuf(64, 8), b.fresh("sbuf", 64, 8)
    return lambda: b.isa.sendrecv(d, x, 1, 1, 0)


@case(MachineError, "single core", "lnc=2")
def barrier_on_a_single_core(b):
    x = b.hbm(64, 8)
    return lambda: b.isa.core_barrier(x)


@case(MachineError, "NeuronCore-v2", generation=2)
def sendrecv_before_v3(b):
    x, d = b.sbuf(64, 8), b.fresh("sbuf", 64, 8)
    return lambda: b.isa.sendrecv(d, x, 1, 1, 0)


# -- memories and windows -------------------------------------------------------


@case(CapacityError, "229376", "at most 229312")
def sbuf_is_full(b):
    b.fresh("sbuf", 1, 16)
    return lambda: b.m.sbuf.alloc((128, 57344))


@case(CapacityError, "hbm")
def hbm_is_full(b):
    return lambda: b.m.hbm.alloc((2**36,))


@case(BankError, "bank is 8", "0 to 7")
def psum_bank_8(b):
    return lambda: b.m.psum.alloc((128, 4), bank=8)


@case(BankError, "bank is 3", "free banks")
def psum_bank_taken(b):
    b.m.psum.alloc((128, 4), bank=3)
    return lambda: b.m.psum.alloc((128, 4), bank=3)


@case(BankError, "free a psum tensor")
def psum_banks_all_taken(b):
    for _ in range(8):
        b.m.psum.alloc((128, 512))
    return lambda: b.m.psum.alloc((1, 1))


@case(BankError, "16388 bytes", "at most 16384")
def psum_tensor_longer_than_all_banks(b):
    return lambda: b.m.psum.alloc((128, 4097))


@case(DTypeError, "float64", "float32, bfloat16")
def put_float64(b):
    return lambda: b.m.sbuf.put(np.ones((4, 4)))


@case(FreeSizeError, r"shape is \(128,\)", "partitions")
def put_one_axis_on_chip(b):
    return lambda: b.m.sbuf.put(np.ones(128, np.float32))


@case(FreeSizeError, r"shape is \(0, 4\)")
def put_nothing(b):
    return lambda: b.m.hbm.put(np.ones((0, 4), np.float32))


@case(PlacementError, "freed already")
def free_twice(b):
    x = b.m.sbuf.put(np.ones((4, 4), np.float32))
    x.free()
    return x.free


@case(OutOfBoundsError, "slice 4:12 on axis 1")
def window_beyond_the_end(b):
    x = b.sbuf(64, 8)
    return lambda: x[:, 4:12]


@case(OutOfBoundsError, "slice 3:3")
def window_without_elements(b):
    x = b.sbuf(64, 8)
    return lambda: x[:, 3:3]


@case(OutOfBoundsError, "index 8 on axis 1")
def window_at_an_index_beyond(b):
    x = b.sbuf(64, 8)
    return lambda: x[:, 8]


@case(OutOfBoundsError, "3 axes", "at most 2")
def window_of_too_many_axes(b):
    x = b.sbuf(64, 8)
    return lambda: x[:, 0, 0]


@case(PartitionError, "step 2 on axis 0")
def window_strided_over_partitions(b):
    x = b.sbuf(64, 8)
    return lambda: x[::2]


@case(PartitionError, "new axis before axis 0")
def window_with_an_axis_before_partitions(b):
    x = b.sbuf(64, 8)
    return lambda: x[None]


@case(MachineError, "index is a ndarray", "gather")
def window_by_data(b):
    x = b.sbuf(64, 8)
    return lambda: x[:, np.array([1, 2])]


@case(PartitionError, r"axes is \(1, 0\)", "transpose")
def permute_partitions(b):
    x = b.sbuf(64, 8)
    return lambda: x.permute((1, 0))


@case(FreeSizeError, r"axes is \(0, 0\)")
def permute_an_axis_twice(b):
    x = b.sbuf(64, 8)
    return lambda: x.permute((0, 0))


@case(PartitionError, "expected 64 on axis 0", "split or joined")
def reshape_partitions(b):
    x = b.sbuf(64, 8)
    return lambda: x.reshape(32, 16)


@case(FreeSizeError, "512 elements")
def reshape_to_another_size(b):
    x = b.sbuf(64, 8)
    return lambda: x.reshape(64, 9)


@case(FreeSizeError, "without a copy")
def reshape_that_would_copy(b):
    x = b.sbuf(64, 4, 2)
    return lambda: x.permute((0, 2, 1)).reshape(64, 8)


@case(PartitionError, "expected 1 on axis 0", "step 0")
def broadcast_over_partitions(b):
    x = b.sbuf(1, 8)
    return lambda: x.broadcast_to((64, 8))


@case(FreeSizeError, "axes of size 1")
def broadcast_of_a_wide_axis(b):
    x = b.sbuf(64, 8)
    return lambda: x.broadcast_to((64, 16))


@case(OutOfBoundsError, "elements 0 to 8", "0 to 7")
def pattern_beyond_the_partition(b):
    x = b.sbuf(64, 8)
    return lambda: x.ap([[8, 64], [2, 5]])


@case(PartitionError, "steps by 16", "expected 8")
def pattern_skips_partitions(b):
    x = b.sbuf(64, 8)
    return lambda: x.ap([[16, 32], [1, 8]])


@case(OutOfBoundsError, "partitions 32 to 95")
def pattern_beyond_the_last_partition(b):
    x = b.sbuf(64, 8)
    return lambda: x.ap([[8, 64], [1, 8]], offset=256)


@case(FreeSizeError, "num >= 1")
def pattern_without_elements(b):
    x = b.sbuf(64, 8)
    return lambda: x.ap([[8, 0]])


def test_every_case_has_a_name_of_its_own():
    names = [c.id for c in CASES]
    assert len(set(names)) == len(names) >= 120


def test_wrong_arguments_are_type_errors(bench):
    tile = bench.sbuf(4, 4)
    with pytest.raises(TypeError, match="memset"):
        bench.isa.memset(tile)
    with pytest.raises(TypeError, match="unexpected"):
        bench.isa.memset(tile, 0.0, speed=9)
    with pytest.raises(TypeError, match="multiple values"):
        bench.isa.memset(tile, 0.0, value=1.0)
    with pytest.raises(TypeError, match="too many"):
        bench.isa.reciprocal(tile, tile, tile)
    assert len(bench.m.trace) == 0
