"""Illegal copies and fills."""

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
)
from flashlib.machine import Machine

case, test_refused_with_reason_and_without_effect = cases()
BF16 = ml_dtypes.bfloat16


@case(PlacementError, "src has memory psum", "gpsimd")
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


@case(PartitionError, "has start partition 16", "32 partitions", "multiple of 32")
def copy_from_partition_16(b):
    x, d = b.sbuf(128, 8), b.fresh("sbuf", 32, 8)
    return lambda: b.isa.tensor_copy(d, x[16:48])


@case(PartitionError, "has start partition 32", "96 partitions")
def copy_96_partitions_from_32(b):
    x, d = b.sbuf(128, 8), b.fresh("sbuf", 96, 8)
    return lambda: b.isa.tensor_copy(d, x[32:128])


@case(PartitionError, "has start partition 32", "64 partitions", "0, 64")
def copy_64_partitions_to_32(b):
    x, d = b.sbuf(64, 8), b.fresh("sbuf", 128, 8)
    return lambda: b.isa.tensor_copy(d[32:96], x)


@case(OutOfBoundsError, "index has 32:160", "128 elements")
def copy_128_partitions_from_32(b):
    x, d = b.sbuf(128, 8), b.fresh("sbuf", 128, 8)
    return lambda: b.isa.tensor_copy(d, x[32:160])


@case(PlacementError, "src and predicate have memory psum")
def predicated_both_in_psum(b):
    x, p, d = b.psum(64, 8), b.psum(64, 8, dtype=np.uint8), b.sbuf(64, 8)
    return lambda: b.isa.tensor_copy_predicated(d, x, p)


@case(DTypeError, "predicate has dtype float32", "uint8")
def predicated_by_floats(b):
    x, d = b.sbuf(64, 8), b.sbuf(64, 8)
    return lambda: b.isa.tensor_copy_predicated(d, x, b.tiles[0])


@case(DTypeError, "src has dtype float32", "expected bfloat16")
def predicated_changes_the_type(b):
    x, p = b.sbuf(64, 8), b.sbuf(64, 8, dtype=np.uint8)
    d = b.sbuf(64, 8, dtype=BF16)
    return lambda: b.isa.tensor_copy_predicated(d, x, p)


@case(FreeSizeError, "predicate has 4 elements", "expected 8")
def predicated_by_too_few_flags(b):
    x, p, d = b.sbuf(64, 8), b.sbuf(64, 4, dtype=np.uint8), b.sbuf(64, 8)
    return lambda: b.isa.tensor_copy_predicated(d, x, p)


@case(PlacementError, "dst has memory psum", "gpsimd")
def memset_psum_on_gpsimd(b):
    d = b.fresh("psum", 64, 8)
    return lambda: b.isa.memset(d, 0.0, engine="gpsimd")


@case(FreeSizeError, "has elements that repeat", "each element once")
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


@case(PlacementError, "src has memory of another core", "sendrecv")
def copy_from_another_machine(b):
    x, d = Machine().sbuf.put(np.ones((64, 8), np.float32)), b.fresh("sbuf", 64, 8)
    return lambda: b.isa.tensor_copy(d, x)
