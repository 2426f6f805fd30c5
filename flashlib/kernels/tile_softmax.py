"""Take one tile of scores through the online softmax, in registers (chapter 9).

Scores lie transposed, ``[keys, lanes]``: the row of one query is a column, so
maximum, exp, sum and rescale are the same instruction for every lane, and no
vector is ever summed across. Running maximum and sum stay in registers while
the keys pass by; memory sees the scores twice and the state once.
"""

import numpy as np
from numba import types
from numba.extending import intrinsic

from flashlib.kernels.exp2 import emit_exp, emit_tanh
from flashlib.kernels.vectors import INT, Vectors, literal_target

__all__ = ["cap_scores", "divide_rows", "softmax_tile"]

# Weights in one chain of additions.
WEIGHTS_PER_CHAIN = 16


@intrinsic
def softmax_tile(
    typingctx, s, s_at, n_keys, m, l, compensation, corr, state_at, target
):
    """Turn scores into weights, and take `m` and `l` past them.

    ============  ============================================================
    s             ``[n_keys, lanes]``: scores in, ``exp(s - m)`` out
    m, l          ``[lanes]``: running maximum and denominator, updated
    compensation  ``[lanes]``: what rounding has taken from `l`, updated
    corr          ``[lanes]``: written, ``exp(m before - m after)``
    ============  ============================================================
    """
    shape = literal_target(target)
    index = types.intp
    signature = types.void(s, index, index, m, l, compensation, corr, index, target)

    def codegen(context, builder, signature, args):
        vectors = Vectors(context, builder, s.dtype, shape)
        scores = vectors.pointer(s, args[0], args[1])
        state = [
            vectors.pointer(kind, value, args[7])
            for kind, value in zip((m, l, compensation, corr), args[3:7], strict=True)
        ]
        _emit_softmax(vectors, scores, args[2], *state)
        return context.get_dummy_value()

    return signature, codegen


def _emit_softmax(vectors: Vectors, scores, n_keys, m, l, compensation, corr) -> None:
    builder, count = vectors.builder, vectors.target.vectors
    offsets = [INT(v * vectors.lanes) for v in range(count)]
    row = INT(count * vectors.lanes)
    nothing, zero = vectors.constant(-np.inf), vectors.constant(0.0)

    def places(t):
        start = builder.mul(t, row)
        return [builder.add(start, offset) for offset in offsets]

    def higher(t, maxima):
        return [
            vectors.maximum(vectors.load(scores, place), maximum)
            for place, maximum in zip(places(t), maxima, strict=True)
        ]

    before = [vectors.load(m, offset) for offset in offsets]
    after = vectors.loop(n_keys, before, higher)
    # A lane without any key yet is measured against 0: -inf - -inf is NaN.
    empty = [vectors.compare("==", top, nothing) for top in after]
    base = [
        builder.select(none, zero, top) for none, top in zip(empty, after, strict=True)
    ]
    factors = []
    for v, offset in enumerate(offsets):
        vectors.store(after[v], m, offset)
        factors.append(emit_exp(vectors, vectors.sub(before[v], base[v])))
        vectors.store(factors[v], corr, offset)

    def weigh(t, totals):
        results = []
        for v, place in enumerate(places(t)):
            x = vectors.sub(vectors.load(scores, place), base[v])
            p = emit_exp(vectors, x)
            vectors.store(p, scores, place)
            results.append(vectors.add(totals[v], p))
        return results

    # No chain of additions may get long: a few keys, then these sums, then tiles.
    sums = vectors.loop_in_pieces(n_keys, [zero] * count, weigh, WEIGHTS_PER_CHAIN)
    for v, offset in enumerate(offsets):
        arrays = l, compensation
        before = [vectors.mul(vectors.load(x, offset), factors[v]) for x in arrays]
        after = vectors.two_sum_add(*before, sums[v])
        for x, place in zip(after, arrays, strict=True):
            vectors.store(x, place, offset)


@intrinsic
def cap_scores(typingctx, s, s_at, n_vectors, softcap, target):
    """Replace every score of some vectors by ``softcap * tanh(s / softcap)``."""
    shape = literal_target(target)
    index = types.intp
    signature = types.void(s, index, index, s.dtype, target)

    def codegen(context, builder, signature, args):
        vectors = Vectors(context, builder, s.dtype, shape)
        scores = vectors.pointer(s, args[0], args[1])
        cap = vectors.splat(args[3])

        def squeeze(n, carried):
            place = builder.mul(n, INT(vectors.lanes))
            ratio = vectors.div(vectors.load(scores, place), cap)
            capped = vectors.mul(cap, emit_tanh(vectors, ratio))
            vectors.store(capped, scores, place)
            return carried

        vectors.loop(args[2], [], squeeze)
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def divide_rows(typingctx, acc, acc_at, n_rows, l, l_at, target):
    """Divide every row of ``acc [n_rows, lanes]`` by `l`; ``l = 0`` divides by 1.

    subtle: a sum of values too small to represent is +0 or -0, depending on
    what was added last, even if that was 0 times a hidden value. Adding +0
    makes both +0.
    """
    shape = literal_target(target)
    index = types.intp
    signature = types.void(acc, index, index, l, index, target)

    def codegen(context, builder, signature, args):
        vectors = Vectors(context, builder, acc.dtype, shape)
        rows = vectors.pointer(acc, args[0], args[1])
        sums = vectors.pointer(l, args[3], args[4])
        zero, one = vectors.constant(0.0), vectors.constant(1.0)
        offsets = [INT(v * vectors.lanes) for v in range(shape.vectors)]
        divisors = []
        for offset in offsets:
            total = vectors.load(sums, offset)
            none = vectors.compare("==", total, zero)
            divisors.append(builder.select(none, one, total))

        def divide(r, carried):
            start = builder.mul(r, INT(shape.vectors * vectors.lanes))
            for divisor, offset in zip(divisors, offsets, strict=True):
                place = builder.add(start, offset)
                ratio = vectors.div(vectors.load(rows, place), divisor)
                vectors.store(vectors.add(ratio, zero), rows, place)
            return carried

        vectors.loop(args[2], [], divide)
        return context.get_dummy_value()

    return signature, codegen
