"""One illegal program per case, and the one test that all of them share.

A case sets operands up on a bench and returns the illegal call. The message names
the limit and the value; nothing has changed and nothing is traced.

    case, test_refused_with_reason_and_without_effect = cases()

    @case(PartitionError, "moving has 32 partitions", "expected 64")
    def matmul_contraction_differs(b):
        x, y, d = b.sbuf(64, 16), b.sbuf(32, 8), b.fresh("psum", 16, 8)
        return lambda: b.isa.nc_matmul(d, x, y)
"""

import pytest


def cases():
    """Return the decorator that registers cases, and the test that runs them."""
    registered = []

    def case(error, *words, generation=3):
        """Register one illegal program: its error and words of the message."""

        def keep(setup):
            name = setup.__name__
            assert name not in [c.id for c in registered], f"{name} is there twice"
            registered.append(pytest.param(setup, error, words, generation, id=name))
            return setup

        return keep

    # pytest reads the list when it collects, after the module has filled it
    @pytest.mark.parametrize("setup, error, words, generation", registered)
    def refused(bench_of, setup, error, words, generation):
        b = bench_of(generation)
        call = setup(b)
        with b.refuses(error, *words):
            call()

    refused.cases = registered
    return case, refused
