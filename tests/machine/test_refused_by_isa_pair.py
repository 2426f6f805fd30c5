"""Illegal meetings: there is no other core."""

from machine.refusal_cases import cases

from flashlib import MachineError, PlacementError

case, test_refused_with_reason_and_without_effect = cases()


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


@case(PlacementError, "data has memory sbuf", "allocate it with hbm.alloc")
def barrier_over_a_memory_that_is_not_shared(b):
    x = b.sbuf(64, 8)
    return lambda: b.isa.core_barrier(x)
