"""Illegal allocations: no room, no such bank, no such type."""

import numpy as np
from machine.refusal_cases import cases

from flashlib import BankError, CapacityError, DTypeError, FreeSizeError, PlacementError

case, test_refused_with_reason_and_without_effect = cases()


@case(CapacityError, "229376", "at most 229312")
def sbuf_is_full(b):
    b.fresh("sbuf", 1, 16)
    return lambda: b.m.sbuf.alloc((128, 57344))


@case(CapacityError, "hbm")
def hbm_is_full(b):
    return lambda: b.m.hbm.alloc((2**36,))


@case(BankError, "bank has 8", "0 to 7")
def psum_bank_8(b):
    return lambda: b.m.psum.alloc((128, 4), bank=8)


@case(BankError, "bank has 3", "free banks")
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


@case(FreeSizeError, r"shape has \(128,\)", "partitions")
def put_one_axis_on_chip(b):
    return lambda: b.m.sbuf.put(np.ones(128, np.float32))


@case(FreeSizeError, r"shape has \(0, 4\)")
def put_nothing(b):
    return lambda: b.m.hbm.put(np.ones((0, 4), np.float32))


@case(PlacementError, "freed already")
def free_twice(b):
    x = b.m.sbuf.put(np.ones((4, 4), np.float32))
    x.free()
    return x.free
