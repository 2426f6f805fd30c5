"""Illegal calls of the vector engine: two tiles, or a tile and scalars."""

import ml_dtypes
import numpy as np
from machine.refusal_cases import cases

from flashlib import (
    DTypeError,
    FreeSizeError,
    MachineError,
    PartitionError,
    PlacementError,
)

case, test_refused_with_reason_and_without_effect = cases()
BF16 = ml_dtypes.bfloat16


@case(PlacementError, "data1 and data2 have memory psum", "one operand")
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


@case(MachineError, "op has 'plus'", "add, subtract")
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


@case(PlacementError, "data1 has memory psum", "gpsimd engine has no port")
def tensor_tensor_on_gpsimd_with_psum(b):
    x, y, d = b.psum(64, 8), b.sbuf(64, 8), b.fresh("sbuf", 64, 8)
    return lambda: b.isa.tensor_tensor(d, x, y, "add", engine="gpsimd")


@case(PlacementError, "engine has 'tensor'", "vector or gpsimd")
def tensor_tensor_on_the_tensor_engine(b):
    x, d = b.sbuf(64, 8), b.fresh("sbuf", 64, 8)
    return lambda: b.isa.tensor_tensor(d, x, x, "add", engine="tensor")


@case(DTypeError, "operand0 has dtype bfloat16", "expected float32")
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


@case(MachineError, "op0 and op1 have 'bitwise_and' and 'add'", "two arithmetic or two")
def tensor_scalar_mixes_bits_and_arithmetic(b):
    x = b.sbuf(64, 8, dtype=np.int32)
    d = b.fresh("sbuf", 64, 8, dtype=np.int32)
    return lambda: b.isa.tensor_scalar(d, x, "bitwise_and", 1, op1="add", operand1=1.0)


@case(MachineError, "'subtract' and None on the scalar engine", "multiply then add")
def tensor_scalar_subtracts_on_the_scalar_engine(b):
    x, d = b.sbuf(64, 8), b.fresh("sbuf", 64, 8)
    return lambda: b.isa.tensor_scalar(d, x, "subtract", 1.0, engine="scalar")


@case(MachineError, "op0 has 'add' on the gpsimd engine", "rsqrt")
def tensor_scalar_adds_on_gpsimd(b):
    x, d = b.sbuf(64, 8), b.fresh("sbuf", 64, 8)
    return lambda: b.isa.tensor_scalar(d, x, "add", 1.0, engine="gpsimd")


@case(MachineError, "operand0 has type list", "number or a tensor")
def tensor_scalar_operand_a_list(b):
    x, d = b.sbuf(64, 8), b.fresh("sbuf", 64, 8)
    return lambda: b.isa.tensor_scalar(d, x, "add", [1.0, 2.0])


def _bits(b, *steps, dtype=np.uint8):
    x = b.sbuf(64, 8, dtype=dtype)
    d = b.fresh("sbuf", 64, 8, dtype=dtype)
    return lambda: b.isa.tensor_scalar(d, x, *steps)


@case(MachineError, "operand0 has type float; expected an integer constant")
def tensor_scalar_bits_with_a_float(b):
    return _bits(b, "bitwise_and", 1.5, dtype=np.int32)


@case(MachineError, "operand0 has 11805916207174", "expected 0 to 4294967295")
def tensor_scalar_bits_beyond_every_type(b):
    return _bits(b, "bitwise_or", 2**70, dtype=np.uint32)


@case(MachineError, "operand0 has 300; expected 0 to 255", "uint8")
def tensor_scalar_bits_beyond_a_byte(b):
    return _bits(b, "bitwise_or", 300)


@case(MachineError, "operand0 has -1; expected 0 to 255", "uint8")
def tensor_scalar_bits_with_a_sign(b):
    return _bits(b, "bitwise_and", np.int64(-1))


@case(MachineError, "operand0 has 2147483648; expected -2147483648 to 2147483647")
def tensor_scalar_bits_of_an_unsigned_number(b):
    return _bits(b, "bitwise_xor", 2**31, dtype=np.int32)


@case(MachineError, "operand1 has 65536; expected 0 to 65535", "uint16")
def tensor_scalar_second_bits_beyond_the_type(b):
    return _bits(b, "left_shift", 1, False, "bitwise_or", 2**16, dtype=np.uint16)


@case(MachineError, "operand1 has type NoneType; expected an integer constant")
def tensor_scalar_second_bits_left_out(b):
    return _bits(b, "left_shift", 1, False, "bitwise_or")


@case(PlacementError, "data and operand1 have memory psum")
def scalar_tensor_tensor_both_in_psum(b):
    x, y, d = b.psum(64, 8), b.psum(64, 8), b.fresh("sbuf", 64, 8)
    return lambda: b.isa.scalar_tensor_tensor(d, x, "multiply", 2.0, "add", y)


@case(MachineError, "op0 has 'bitwise_or'")
def scalar_tensor_tensor_of_bits(b):
    x, d = b.sbuf(64, 8), b.fresh("sbuf", 64, 8)
    return lambda: b.isa.scalar_tensor_tensor(d, x, "bitwise_or", 2, "add", x)


@case(PartitionError, "dst has 32 partitions", "expected 64 like data")
def reciprocal_into_another_height(b):
    x, d = b.sbuf(64, 8), b.fresh("sbuf", 32, 8)
    return lambda: b.isa.reciprocal(d, x)
