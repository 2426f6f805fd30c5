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

from flashlib.kernels.vectors import INT, Vectors, literal_target

__all__ = ["add_rows", "dot_rows"]

# Vectors in one chain of multiply-adds.
VECTORS_PER_CHAIN = 32


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
    sums = vectors.loop_in_pieces(whole, zeros, by_vector, VECTORS_PER_CHAIN)
    totals = [vectors.reduce(vectors.add, x) for x in sums]
    return vectors.loop(builder.sub(depth, start), totals, by_element)


def _saxpy(vectors: Vectors, values, factors, sums, depth) -> None:
    """Emit ``sums[lane] += factors[lane][r] * values[r]`` along the whole width."""
    builder, width = vectors.builder, INT(vectors.lanes)
    whole = builder.sdiv(depth, width)
    start = builder.mul(whole, width)
    spread = [[vectors.splat(x) for x in lane] for lane in factors]

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

    vectors.loop(whole, [], by_vector)
    vectors.loop(builder.sub(depth, start), [], by_element)


def _literals(*constants) -> list[int]:
    if not all(isinstance(x, types.IntegerLiteral) for x in constants):
        raise errors.RequireLiteralValue("counts must be compile-time constants")
    return [x.literal_value for x in constants]
