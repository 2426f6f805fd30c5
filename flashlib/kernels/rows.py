"""Multiply rows of a cache where they lie, a few rows and a few queries (chapter 14).

With one query per sequence there is nothing to share but the row itself: every
byte of the cache is read once, and the product has to keep pace with memory.
Here vectors run along head_dim. Rows are given by their addresses, so that
they may lie anywhere: one after the other, or spread over pages.

The sum of one score, and of one result, is formed in the same order however
many rows and queries are taken at once. `n_rows`, `n_lanes` and `target` must
be compile-time constants.
"""

from llvmlite import ir
from numba import types
from numba.core import errors
from numba.extending import intrinsic

from flashlib.kernels.exp2 import emit_exp
from flashlib.kernels.vectors import INT, INT32, Vectors, literal_target

__all__ = ["add_rows", "dot_rows", "softmax_row", "vector_lanes"]

# Vectors in one chain of multiply-adds.
VECTORS_PER_CHAIN = 32


@intrinsic
def vector_lanes(typingctx, like, target):
    """Return how many elements of the array `like` one vector holds."""
    lanes = literal_target(target).vector_bytes * 8 // like.dtype.bitwidth
    signature = types.intp(like, target)

    def codegen(context, builder, signature, args):
        return context.get_constant(types.intp, lanes)

    return signature, codegen


@intrinsic
def dot_rows(
    typingctx, rows, t, q, q_at, s, s_at, s_step, depth, scale, n_rows, n_lanes, target
):
    """Write ``s[lane, t + r] = scale * (row t + r) . q[lane]``.

    ============  ============================================================
    rows          addresses, int64; taken from `t` on
    q             ``[n_lanes, depth]`` from `q_at` on
    s             ``[n_lanes, s_step]`` from `s_at` on
    ============  ============================================================
    """
    shape, index = literal_target(target), types.intp
    counts = _literals(n_rows, n_lanes)
    signature = types.void(
        rows, index, q, index, s, index, index, index, s.dtype, n_rows, n_lanes, target
    )

    def codegen(context, builder, signature, args):
        vectors = Vectors(context, builder, s.dtype, shape)
        keys = vectors.rows(rows, args[0], args[1], counts[0])
        first = vectors.pointer(q, args[2], args[3])
        queries = [
            builder.gep(first, [builder.mul(args[7], INT(n))]) for n in range(counts[1])
        ]
        totals = _dots(vectors, keys, queries, args[7])
        scores = vectors.pointer(s, args[4], builder.add(args[5], args[1]))
        for n, total in enumerate(totals):
            lane, r = n % counts[1], n // counts[1]
            place = builder.add(builder.mul(args[6], INT(lane)), INT(r))
            score = vectors.mul(total, args[8])
            builder.store(score, builder.gep(scores, [place]))
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def add_rows(
    typingctx, rows, t, p, p_at, p_step, acc, acc_at, depth, n_rows, n_lanes, target
):
    """Write ``acc[lane] += sum_r p[lane, t + r] * (row t + r)``, row by row.

    ============  ============================================================
    rows          addresses, int64; taken from `t` on
    p             ``[n_lanes, p_step]`` from `p_at` on
    acc           ``[n_lanes, depth]`` from `acc_at` on
    ============  ============================================================
    """
    shape, index = literal_target(target), types.intp
    counts = _literals(n_rows, n_lanes)
    signature = types.void(
        rows, index, p, index, index, acc, index, index, n_rows, n_lanes, target
    )

    def codegen(context, builder, signature, args):
        vectors = Vectors(context, builder, acc.dtype, shape)
        values = vectors.rows(rows, args[0], args[1], counts[0])
        weights = vectors.pointer(p, args[2], builder.add(args[3], args[1]))
        first = vectors.pointer(acc, args[5], args[6])
        sums = [
            builder.gep(first, [builder.mul(args[7], INT(n))]) for n in range(counts[1])
        ]
        factors = [
            [
                builder.load(
                    builder.gep(
                        weights, [builder.add(builder.mul(args[4], INT(n)), INT(r))]
                    )
                )
                for r in range(counts[0])
            ]
            for n in range(counts[1])
        ]
        _saxpy(vectors, values, factors, sums, args[7])
        return context.get_dummy_value()

    return signature, codegen


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
    before = vectors.spread(builder.load(tops))

    def higher(n, maxima):
        x = vectors.load(scores, builder.mul(n, width))
        return [vectors.larger(x, maxima[0])]

    (highest,) = vectors.count(n_vectors, [before], higher)
    top = vectors.across(vectors.larger, highest)
    builder.store(top, tops)
    after = vectors.spread(top)
    # A lane without any key yet is measured against 0: -inf - -inf is NaN.
    base = builder.select(vectors.compare("==", after, nothing), zero, after)

    def weigh(n, totals):
        place = builder.mul(n, width)
        p = emit_exp(vectors, vectors.sub(vectors.load(scores, place), base))
        vectors.store(p, scores, place)
        return [vectors.add(totals[0], p)]

    (totals,) = vectors.count(n_vectors, [zero], weigh)
    corr = builder.extract_element(
        emit_exp(vectors, vectors.sub(before, base)), INT32(0)
    )
    total = vectors.across(vectors.add, totals)
    places = sums, compensations
    l, compensation = (vectors.mul(builder.load(x), corr) for x in places)
    l, compensation = vectors.kahan_add(l, compensation, total)
    builder.store(l, sums)
    builder.store(compensation, compensations)
    return corr


def _dots(vectors: Vectors, keys, queries, depth) -> list[ir.Value]:
    """Emit the dot products of all pairs, vectors first, then what is left over."""
    builder, width = vectors.builder, INT(vectors.lanes)
    whole = builder.sdiv(depth, width)
    start = builder.mul(whole, width)

    def by_vector(n, sums):
        place = builder.mul(n, width)
        right = [vectors.load(query, place) for query in queries]
        left = [vectors.load(key, place) for key in keys]
        pairs = [(a, b) for a in left for b in right]
        return [vectors.fma(*pair, x) for pair, x in zip(pairs, sums, strict=True)]

    def by_element(n, sums):
        place = builder.add(start, n)
        right = [builder.load(builder.gep(query, [place])) for query in queries]
        left = [builder.load(builder.gep(key, [place])) for key in keys]
        pairs = [(a, b) for a in left for b in right]
        return [vectors.fma(*pair, x) for pair, x in zip(pairs, sums, strict=True)]

    zeros = [vectors.constant(0.0)] * (len(keys) * len(queries))
    sums = vectors.count_in_pieces(whole, zeros, by_vector, VECTORS_PER_CHAIN)
    totals = [vectors.across(vectors.add, x) for x in sums]
    return vectors.count(builder.sub(depth, start), totals, by_element)


def _saxpy(vectors: Vectors, values, factors, sums, depth) -> None:
    """Emit ``sums[lane] += factors[lane][r] * values[r]`` along the whole width."""
    builder, width = vectors.builder, INT(vectors.lanes)
    whole = builder.sdiv(depth, width)
    start = builder.mul(whole, width)
    spread = [[vectors.spread(x) for x in lane] for lane in factors]

    def by_vector(n, carried):
        place = builder.mul(n, width)
        rows = [vectors.load(value, place) for value in values]
        for lane, total in zip(spread, sums, strict=True):
            x = vectors.load(total, place)
            for factor, row in zip(lane, rows, strict=True):
                x = vectors.fma(factor, row, x)
            vectors.store(x, total, place)
        return carried

    def by_element(n, carried):
        place = builder.add(start, n)
        rows = [builder.load(builder.gep(value, [place])) for value in values]
        for lane, total in zip(factors, sums, strict=True):
            where = builder.gep(total, [place])
            x = builder.load(where)
            for factor, row in zip(lane, rows, strict=True):
                x = vectors.fma(factor, row, x)
            builder.store(x, where)
        return carried

    vectors.count(whole, [], by_vector)
    vectors.count(builder.sub(depth, start), [], by_element)


def _literals(*constants) -> list[int]:
    if not all(isinstance(x, types.IntegerLiteral) for x in constants):
        raise errors.RequireLiteralValue("counts must be compile-time constants")
    return [x.literal_value for x in constants]
