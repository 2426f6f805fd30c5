"""Take the scores of one query through the online softmax, in registers (chapter 14).

Here a vector holds scores of one row, so its lanes have to be combined at the end,
unlike in :mod:`flashlib.kernels.tile_softmax`.
"""

from numba import types
from numba.extending import intrinsic

from flashlib.kernels.exp2 import emit_exp
from flashlib.kernels.vectors import INT, INT32, Vectors, literal_target

__all__ = ["softmax_row"]


@intrinsic
def softmax_row(typingctx, s, s_at, n_vectors, m, l, compensation, lane, target):
    """Turn the scores of one lane into weights, and return `corr`.

    `m`, `l` and the `compensation` of `l`, which holds what rounding took from it,
    are updated. Scores beyond the last key must be -inf, up to a whole vector.
    """
    shape, index = literal_target(target), types.intp
    signature = s.dtype(s, index, index, m, l, compensation, index, target)

    def codegen(context, builder, signature, args):
        vectors = Vectors(context, builder, s.dtype, shape)
        scores = vectors.pointer(s, args[0], args[1])
        state = [
            vectors.pointer(kind, value, args[6])
            for kind, value in zip((m, l, compensation), args[3:6], strict=True)
        ]
        return _emit_row(vectors, scores, args[2], *state)

    return signature, codegen


def _emit_row(vectors: Vectors, scores, n_vectors, tops, sums, compensations):
    builder, width = vectors.builder, INT(vectors.lanes)
    nothing, zero = vectors.constant(float("-inf")), vectors.constant(0.0)
    before = vectors.splat(builder.load(tops))

    def higher(n, maxima):
        x = vectors.load(scores, builder.mul(n, width))
        return [vectors.maximum(x, maxima[0])]

    (highest,) = vectors.loop(n_vectors, [before], higher)
    top = vectors.reduce(vectors.maximum, highest)
    builder.store(top, tops)
    after = vectors.splat(top)
    # A lane without any key yet is measured against 0: -inf - -inf is NaN.
    base = builder.select(vectors.compare("==", after, nothing), zero, after)

    def weigh(n, totals):
        place = builder.mul(n, width)
        p = emit_exp(vectors, vectors.sub(vectors.load(scores, place), base))
        vectors.store(p, scores, place)
        return [vectors.add(totals[0], p)]

    (totals,) = vectors.loop(n_vectors, [zero], weigh)
    corr = builder.extract_element(
        emit_exp(vectors, vectors.sub(before, base)), INT32(0)
    )
    total = vectors.reduce(vectors.add, totals)
    places = sums, compensations
    l, compensation = (vectors.mul(builder.load(x), corr) for x in places)
    l, compensation = vectors.two_sum_add(l, compensation, total)
    builder.store(l, sums)
    builder.store(compensation, compensations)
    return corr
