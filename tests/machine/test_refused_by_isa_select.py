"""Illegal selects and shuffles."""

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

case, test_refused_with_reason_and_without_effect = cases()
BF16 = ml_dtypes.bfloat16


def _range(b, bound=None, **more):
    x, d = b.sbuf(64, 8), b.fresh("sbuf", 64, 8)
    low = b.sbuf(64, 1) if bound is None else bound
    high = b.sbuf(64, 1)
    return lambda: b.isa.range_select(d, x, "greater_equal", "less", low, high, **more)


@case(MachineError, "on_false_value has 0.0", "-3.4028234663852886e.38")
def range_select_other_fill(b):
    return _range(b, on_false_value=0.0)


@case(MachineError, "range_start has 16777209", "float32")
def range_select_index_of_2_to_24(b):
    return _range(b, range_start=2**24 - 7)


@case(DTypeError, "bound0 has dtype bfloat16", "float32")
def range_select_bound_not_float32(b):
    return _range(b, bound=b.sbuf(64, 1, dtype=BF16))


@case(FreeSizeError, "bound0 has 8 elements")
def range_select_bound_not_a_column(b):
    return _range(b, bound=b.sbuf(64, 8))


@case(MachineError, "NeuronCore-v2", "range_select", generation=2)
def range_select_before_v3(b):
    return _range(b)


@case(MachineError, "reduce_op has 'add'", "maximum")
def range_select_sums(b):
    return _range(b, reduce_op="add")


@case(PlacementError, "on_true and predicate have memory psum")
def select_reduce_both_in_psum(b):
    x, p, d = b.psum(64, 8), b.psum(64, 8, dtype=np.uint8), b.fresh("sbuf", 64, 8)
    return lambda: b.isa.select_reduce(d, p, x, 0.0)


@case(DTypeError, "on_true has dtype int32")
def select_reduce_of_wide_integers(b):
    x, p = b.sbuf(64, 8, dtype=np.int32), b.sbuf(64, 8, dtype=np.uint8)
    d = b.fresh("sbuf", 64, 8)
    return lambda: b.isa.select_reduce(d, p, x, 0.0)


def _shuffle(b, src_rows, dst_rows, mask=None, dtype=np.float32):
    x = b.sbuf(128, 8)
    d = b.sbuf(128, 8, dtype=dtype)
    mask = list(range(32)) if mask is None else mask
    return lambda: b.isa.nc_stream_shuffle(d[dst_rows], x[src_rows], mask)


@case(PartitionError, "has start partition 32", "96")
def shuffle_96_from_32(b):
    return _shuffle(b, slice(32, 128), slice(0, 96))


@case(PartitionError, "dst has start partition 32", "64")
def shuffle_64_to_32(b):
    return _shuffle(b, slice(0, 64), slice(32, 96))


@case(PartitionError, "dst has start partition 64 and 96 active", "multiple of 128")
def shuffle_96_to_64(b):
    return _shuffle(b, slice(0, 96), slice(64, 96))


@case(PartitionError, "src has start partition 64 and 96 active", "multiple of 128")
def shuffle_65_rounded_up_from_64(b):
    return _shuffle(b, slice(64, 96), slice(0, 65))


@case(PartitionError, "src has start partition 16", "32")
def shuffle_32_from_16(b):
    return _shuffle(b, slice(16, 48), slice(0, 32))


@case(DTypeError, "dst has dtype bfloat16", "float32")
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
