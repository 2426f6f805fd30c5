"""Multiply a panel by a block of lanes, all of the result in registers (chapter 9).

A *lane* is one query row; a block is `lanes` of them side by side. A *panel*
is `rows` keys (or `rows` columns of the values) side by side. For every step
of the shared dimension the product loads one vector per `lanes`, spreads one
number per row, and issues ``rows * vectors`` multiply-adds: 12 of them for 7
loads on AVX2, so that the arithmetic units, not the loads, set the pace.

============  ==============================================================
panel         ``[depth, rows]``, the left operand, packed
lanes         ``[depth, lanes]``, the right operand
out           ``[rows, lanes]``, written
============  ==============================================================

All arrays are one-dimensional and contiguous; the integer behind each is the
offset of its first element. `target` must be a compile-time constant.
"""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from flashlib.kernels.vectors import INT, Vectors, literal_target

__all__ = [
    "accumulate_panel",
    "lanes_of",
    "products",
    "rows_of",
    "score_panel",
    "vector_lanes",
    "vectors_of",
]

# Products in one chain of additions of a score: the width of most heads.
PRODUCTS_PER_CHAIN = 128


@intrinsic
def rows_of(typingctx, target):
    """Return the rows of a panel, a compile-time constant."""
    rows = literal_target(target).rows
    signature = types.intp(target)

    def codegen(context, builder, signature, args):
        return context.get_constant(types.intp, rows)

    return signature, codegen


@intrinsic
def vectors_of(typingctx, target):
    """Return the vectors of a block, a compile-time constant."""
    n_vectors = literal_target(target).vectors
    signature = types.intp(target)

    def codegen(context, builder, signature, args):
        return context.get_constant(types.intp, n_vectors)

    return signature, codegen


@intrinsic
def lanes_of(typingctx, like, target):
    """Return the lanes of a block for the element type of the array `like`."""
    shape = literal_target(target)
    lanes = shape.vectors * shape.vector_bytes * 8 // like.dtype.bitwidth
    signature = types.intp(like, target)

    def codegen(context, builder, signature, args):
        return context.get_constant(types.intp, lanes)

    return signature, codegen


@intrinsic
def vector_lanes(typingctx, like, target):
    """Return how many elements of the array `like` one vector holds."""
    lanes = literal_target(target).vector_bytes * 8 // like.dtype.bitwidth
    signature = types.intp(like, target)

    def codegen(context, builder, signature, args):
        return context.get_constant(types.intp, lanes)

    return signature, codegen


@intrinsic
def score_panel(
    typingctx, panel, panel_at, lanes, lanes_at, out, out_at, depth, scale, target
):
    """Write ``out[r, i] = scale * sum_d panel[d, r] * lanes[d, i]``.

    A long sum is made in pieces.
    """
    shape = literal_target(target)
    index = types.intp
    signature = types.void(
        panel, index, lanes, index, out, index, index, out.dtype, target
    )

    def codegen(context, builder, signature, args):
        vectors = Vectors(context, builder, out.dtype, shape)
        left = vectors.pointer(panel, args[0], args[1])
        right = vectors.pointer(lanes, args[2], args[3])
        result = vectors.pointer(out, args[4], args[5])
        sums = products(vectors, left, right, args[6], PRODUCTS_PER_CHAIN)
        factor = vectors.splat(args[7])
        for n, total in enumerate(sums):
            vectors.store(vectors.mul(total, factor), result, INT(n * vectors.lanes))
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def accumulate_panel(
    typingctx, panel, panel_at, p, p_at, corr, corr_at, acc, acc_at, depth, target
):
    """Write ``acc[r, i] = acc[r, i] * corr[i] + sum_t panel[t, r] * p[t, i]``.

    The rescale of the online softmax rides along with the store. The sum of a
    tile starts from 0, so that rounding errors of many tiles do not pile up in
    one long chain of additions.
    """
    shape = literal_target(target)
    index = types.intp
    signature = types.void(
        panel, index, p, index, corr, index, acc, index, index, target
    )

    def codegen(context, builder, signature, args):
        vectors = Vectors(context, builder, acc.dtype, shape)
        left = vectors.pointer(panel, args[0], args[1])
        right = vectors.pointer(p, args[2], args[3])
        factors = vectors.pointer(corr, args[4], args[5])
        result = vectors.pointer(acc, args[6], args[7])
        sums = products(vectors, left, right, args[8])
        corrs = [
            vectors.load(factors, INT(v * vectors.lanes)) for v in range(shape.vectors)
        ]
        for n, total in enumerate(sums):
            place = INT(n * vectors.lanes)
            before = vectors.load(result, place)
            after = vectors.fma(before, corrs[n % shape.vectors], total)
            vectors.store(after, result, place)
        return context.get_dummy_value()

    return signature, codegen


def products(vectors: Vectors, left, right, depth, most=None) -> list[ir.Value]:
    """Emit the register tile: one accumulator per row and vector, row by row.

    A sum over more than `most` steps is made in pieces.
    """
    builder, shape = vectors.builder, vectors.target
    width = shape.vectors * vectors.lanes
    zeros = [vectors.constant(0.0)] * (shape.rows * shape.vectors)

    def step(d, sums):
        at_left = builder.mul(d, INT(shape.rows))
        at_right = builder.mul(d, INT(width))
        operands = [
            vectors.load(right, builder.add(at_right, INT(v * vectors.lanes)))
            for v in range(shape.vectors)
        ]
        results = []
        for r in range(shape.rows):
            scalar = builder.load(builder.gep(left, [builder.add(at_left, INT(r))]))
            factor = vectors.splat(scalar)
            row = sums[r * shape.vectors : (r + 1) * shape.vectors]
            results += [
                vectors.fma(factor, operand, total)
                for operand, total in zip(operands, row, strict=True)
            ]
        return results

    if most is None:
        return vectors.loop(depth, zeros, step)
    return vectors.loop_in_pieces(depth, zeros, step, most)
