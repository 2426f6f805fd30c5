"""Illegal reductions along free axes."""

import numpy as np
from machine.refusal_cases import cases

from flashlib import FreeSizeError, MachineError, PartitionError

case, test_refused_with_reason_and_without_effect = cases()


@case(PartitionError, "axis has 0", "free axes", "ones")
def reduce_over_partitions(b):
    x, d = b.sbuf(64, 8), b.fresh("sbuf", 64, 1)
    return lambda: b.isa.tensor_reduce(d, "add", x, axis=0)


@case(FreeSizeError, "axis has 1", "last axes", "permute")
def reduce_over_an_inner_axis(b):
    x, d = b.sbuf(64, 4, 8), b.fresh("sbuf", 64, 8)
    return lambda: b.isa.tensor_reduce(d, "add", x, axis=1)


@case(FreeSizeError, r"axis has \(1, 3\)")
def reduce_over_separate_axes(b):
    x, d = b.sbuf(64, 4, 8, 2), b.fresh("sbuf", 64, 8)
    return lambda: b.isa.tensor_reduce(d, "add", x, axis=(1, 3))


@case(MachineError, "op has 'divide'", "maximum")
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


@case(MachineError, "reduce_op has 'subtract'")
def scalar_reduce_by_subtraction(b):
    x, d, r = b.sbuf(64, 8), b.fresh("sbuf", 64, 8), b.fresh("sbuf", 64, 1)
    return lambda: b.isa.tensor_scalar_reduce(d, x, "multiply", 1.0, "subtract", r)
