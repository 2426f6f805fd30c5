"""Illegal calls of the scalar engine: functions of one variable."""

import ml_dtypes
from machine.refusal_cases import cases

from flashlib import (
    DTypeError,
    FreeSizeError,
    MachineError,
    PartitionError,
    UninitializedError,
)

case, test_refused_with_reason_and_without_effect = cases()
BF16 = ml_dtypes.bfloat16


@case(FreeSizeError, "bias has 8 elements", "expected 1")
def activation_bias_not_a_column(b):
    x, s, d = b.sbuf(64, 8), b.sbuf(64, 8), b.fresh("sbuf", 64, 8)
    return lambda: b.isa.activation(d, "exp", x, bias=s)


@case(DTypeError, "scale has dtype bfloat16", "float32")
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


@case(MachineError, "op has 'cosh'", "exp")
def activation_unknown_function(b):
    x, d = b.sbuf(64, 8), b.fresh("sbuf", 64, 8)
    return lambda: b.isa.activation(d, "cosh", x)


@case(MachineError, "reduce_op has 'maximum'", "add")
def activation_reduce_by_maximum(b):
    x, d, r = b.sbuf(64, 8), b.fresh("sbuf", 64, 8), b.fresh("sbuf", 64, 1)
    return lambda: b.isa.activation_reduce(d, "exp", x, "maximum", r)


@case(MachineError, "reduce_cmd has 'load'", "reset_reduce")
def activation_unknown_command(b):
    x, d = b.sbuf(64, 8), b.fresh("sbuf", 64, 8)
    return lambda: b.isa.activation(d, "exp", x, reduce_op="add", reduce_cmd="load")


@case(UninitializedError, "sum registers", "reset")
def activation_sums_without_reset(b):
    x, d, r = b.sbuf(64, 8), b.fresh("sbuf", 64, 8), b.fresh("sbuf", 64, 1)
    return lambda: b.isa.activation(
        d, "exp", x, reduce_op="add", reduce_res=r, reduce_cmd="reduce"
    )


@case(UninitializedError, "reduce_cmd has 'reduce'", "sum registers")
def activation_adds_without_reset_or_read_out(b):
    x, d = b.sbuf(64, 8), b.fresh("sbuf", 64, 8)
    return lambda: b.isa.activation(d, "exp", x, reduce_op="add", reduce_cmd="reduce")


@case(UninitializedError, "reduce_cmd has 'idle'", "sum registers")
def activation_reads_out_without_reset(b):
    x, d, r = b.sbuf(64, 8), b.fresh("sbuf", 64, 8), b.fresh("sbuf", 64, 1)
    return lambda: b.isa.activation(d, "exp", x, reduce_res=r)


@case(UninitializedError, "reduce_cmd has 'idle'", "sum registers")
def activation_reads_out_beside_the_lanes_that_were_reset(b):
    x, d, r = b.sbuf(64, 8), b.fresh("sbuf", 64, 8), b.fresh("sbuf", 64, 1)
    b.isa.activation(d[:32], "exp", x[:32], reduce_cmd="reset")
    return lambda: b.isa.activation(d, "exp", x, reduce_res=r)
