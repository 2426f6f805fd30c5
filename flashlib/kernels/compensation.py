"""Add up without losing what rounding takes: compensated sums (chapters 5, 14).

Both functions return a new total and what rounding has taken from it so far. They
differ in what they ask of their numbers, and in the price of it.
"""

from flashlib.kernels.jit import exact

__all__ = ["kahan_add", "two_sum_add"]


@exact
def kahan_add(total, compensation, x):
    """Add `x` to a total that is larger, as a sum of many is (Kahan, 1965).

    subtle: to the compiler that may reassociate, ``after - total`` is `x` and the
    compensation 0; it would delete the correction. So this is compiled `exact`.
    """
    x += compensation
    after = total + x
    return after, x - (after - total)


@exact
def two_sum_add(total, compensation, x):
    """Add `x` to a total of any size (Knuth's form: three more operations)."""
    x += compensation
    after = total + x
    part = after - total
    return after, (total - (after - part)) + (x - part)
