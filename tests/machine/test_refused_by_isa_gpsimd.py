"""Illegal calls of the gpsimd engine: index patterns and masks by index."""

from machine.refusal_cases import cases

from flashlib import FreeSizeError, MachineError, PlacementError

case, test_refused_with_reason_and_without_effect = cases()


@case(FreeSizeError, "pattern has 6 elements", "expected 8")
def iota_pattern_of_another_size(b):
    d = b.fresh("sbuf", 64, 8)
    return lambda: b.isa.iota(d, [[2, 3], [1, 2]])


@case(FreeSizeError, "1 to 4 pairs")
def iota_pattern_of_five_axes(b):
    d = b.fresh("sbuf", 64, 32)
    return lambda: b.isa.iota(d, [[1, 2]] * 5)


@case(PlacementError, "dst has memory psum", "sbuf")
def iota_into_psum(b):
    d = b.fresh("psum", 64, 8)
    return lambda: b.isa.iota(d, [[1, 8]])


@case(PlacementError, "on_true_tile has memory psum")
def affine_select_from_psum(b):
    x, d = b.psum(64, 8), b.fresh("sbuf", 64, 8)
    return lambda: b.isa.affine_select(d, [[1, 8]], 1, x, 0.0)


@case(PlacementError, "dst has memory psum")
def affine_select_into_psum(b):
    x, d = b.sbuf(64, 8), b.fresh("psum", 64, 8)
    return lambda: b.isa.affine_select(d, [[1, 8]], 1, x, 0.0)


@case(FreeSizeError, "pattern has 4 elements", "expected 8")
def affine_select_pattern_of_another_size(b):
    x, d = b.sbuf(64, 8), b.fresh("sbuf", 64, 8)
    return lambda: b.isa.affine_select(d, [[1, 4]], 1, x, 0.0)


@case(MachineError, "cmp_op has 'add'", "greater_equal")
def affine_select_by_addition(b):
    x, d = b.sbuf(64, 8), b.fresh("sbuf", 64, 8)
    return lambda: b.isa.affine_select(d, [[1, 8]], 1, x, 0.0, cmp_op="add")
