"""Compute exp and tanh for a whole vector at once (chapter 9).

The processor has no exponential. It can multiply by a power of two for free,
by adding to the exponent bits, so ``exp(x)`` is split::

    exp(x) = 2 ** (x / ln 2) = 2 ** n * 2 ** f,   n an integer, |f| <= 1/2

and ``2 ** f`` is a polynomial ``1 + f * q(f)`` whose constant term is exactly
1. The coefficients below make the largest relative error over the interval as
small as it can be (Remez): 2.6e-9 for float32, 5.7e-20 for float64, both far
below half a unit in the last place.
"""

import math

from flashlib.kernels.vectors import Vectors

__all__ = ["COEFFICIENTS", "emit_exp", "emit_tanh"]

# q(f) of 2 ** f = 1 + f * q(f), lowest power first, by bits of the float type.
COEFFICIENTS = {
    32: (
        0.69314721496788496344,
        0.24022652782876176793,
        0.055503105512069805781,
        0.0096176929761431872291,
        0.0013406643847480060174,
        0.00015594677015105410559,
    ),
    64: (
        0.69314718055994530797,
        0.2402265069591007114,
        0.055504108664821733748,
        0.0096181291076285612421,
        0.001333355814638173885,
        0.00015403530393171833934,
        0.000015252733864844453985,
        1.321548700340878418e-6,
        1.0178047531441557029e-7,
        7.0548148358357440601e-9,
        4.4572392754948482798e-10,
        2.5855240363844972309e-11,
    ),
}
MANTISSA_BITS = {32: 23, 64: 52}
# Below this exp(x) is no normal number any more, and counts as 0.
LOWEST = {32: -87.0, 64: -708.0}
# Above this tanh(x) is 1 to the last bit.
SATURATED = {32: 10.0, 64: 20.0}


def emit_exp(vectors: Vectors, x):
    """Emit ``exp(x)`` for x <= 0: 1 at 0, exactly 0 at -inf, NaN at NaN."""
    builder = vectors.builder
    power, f_q = _split(vectors, x)
    result = vectors.fma(power, f_q, power)
    tiny = vectors.compare("<", x, vectors.constant(LOWEST[vectors.bits]))
    return builder.select(tiny, vectors.constant(0.0), result)


def emit_tanh(vectors: Vectors, x):
    """Emit ``tanh(x)``, as accurate around 0 as far from it.

    With ``e = exp(2 |x|) - 1`` it is ``e / (e + 2)``; e is summed from parts
    that do not cancel.
    """
    builder = vectors.builder
    limit = vectors.constant(2 * SATURATED[vectors.bits])
    double = vectors.add(vectors.magnitude(x), vectors.magnitude(x))
    y = builder.select(vectors.compare(">", double, limit), limit, double)
    power, f_q = _split(vectors, y)
    less_one = vectors.sub(power, vectors.constant(1.0))
    e = vectors.fma(power, f_q, less_one)
    ratio = vectors.div(e, vectors.add(e, vectors.constant(2.0)))
    return vectors.with_sign(ratio, x)


def _split(vectors: Vectors, x):
    """Emit ``2 ** n`` and ``2 ** f - 1`` with ``x / ln 2 = n + f``."""
    builder, bits = vectors.builder, vectors.bits
    mantissa = MANTISSA_BITS[bits]
    high = float(vectors.dtype.type(1 / math.log(2)))
    # subtle: 1 / ln 2 rounded to float32 is off by 1.3e-8, which x = -80 would
    # turn into 1e-6; the rest of it is multiplied separately.
    low = _inverse_ln2_rest(high)
    # Adding 1.5 * 2**23 pushes the fraction out of a float32: what remains in
    # the low bits is the nearest integer, without a conversion instruction.
    magic = vectors.constant(1.5 * 2.0**mantissa)
    shifted = vectors.fma(x, vectors.constant(high), magic)
    n = vectors.sub(shifted, magic)
    f = vectors.fma(x, vectors.constant(high), vectors.negative(n))
    f = vectors.fma(x, vectors.constant(low), f)
    *lower, q = (vectors.constant(c) for c in COEFFICIENTS[bits])
    for coefficient in reversed(lower):
        q = vectors.fma(q, f, coefficient)
    exponent = builder.shl(
        builder.bitcast(shifted, vectors.integers), vectors.integer(mantissa)
    )
    one = builder.bitcast(vectors.constant(1.0), vectors.integers)
    power = builder.bitcast(builder.add(exponent, one), vectors.type)
    return power, vectors.mul(f, q)


def _inverse_ln2_rest(high: float) -> float:
    """Return ``1 / ln 2 - high`` from more digits than a float64 holds."""
    digits = 1_442_695_040_888_963_407_359_924_681_001_892_137  # 1 / ln 2 * 1e36
    numerator, denominator = high.as_integer_ratio()
    return (digits * denominator - numerator * 10**36) / (denominator * 10**36)
