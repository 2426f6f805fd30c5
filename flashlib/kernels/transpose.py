"""Turn rows into columns, a square of registers at a time (chapter 9).

Queries come row by row and are needed lane by lane; keys come row by row and
are needed side by side. Element by element such a copy costs a load and a
store for each; here it costs shuffles inside the registers.

Rows are given by their addresses, in an int64 array.
"""

from numba import types
from numba.extending import intrinsic

from flashlib.kernels.vectors import INT, Vectors, literal_target

__all__ = ["deal_row", "gather_lanes", "gather_panel", "scatter_lanes"]


@intrinsic
def gather_panel(typingctx, rows, rows_at, depth, out, out_at, target):
    """Write ``out[d, r] = row r [d]``: the rows of one panel, side by side."""
    shape, index = literal_target(target), types.intp
    signature = types.void(rows, index, index, out, index, target)

    def codegen(context, builder, signature, args):
        vectors = Vectors(context, builder, out.dtype, shape)
        sources = vectors.rows(rows, args[0], args[1], shape.rows)
        result = vectors.pointer(out, args[3], args[4])
        _emit_gather(vectors, sources, args[2], result, INT(shape.rows))
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def gather_lanes(typingctx, rows, rows_at, depth, out, out_at, step, target):
    """Write ``out[d * step + n] = row n [d]`` for the lanes n of one vector."""
    shape, index = literal_target(target), types.intp
    signature = types.void(rows, index, index, out, index, index, target)

    def codegen(context, builder, signature, args):
        vectors = Vectors(context, builder, out.dtype, shape)
        sources = vectors.rows(rows, args[0], args[1], vectors.lanes)
        result = vectors.pointer(out, args[3], args[4])
        _emit_gather(vectors, sources, args[2], result, args[5])
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def scatter_lanes(typingctx, values, values_at, step, depth, rows, rows_at, target):
    """Write ``row n [d] = values[d * step + n]`` for the lanes n of one vector."""
    shape, index = literal_target(target), types.intp
    signature = types.void(values, index, index, index, rows, index, target)

    def codegen(context, builder, signature, args):
        vectors = Vectors(context, builder, values.dtype, shape)
        source = vectors.pointer(values, args[0], args[1])
        results = vectors.rows(rows, args[4], args[5], vectors.lanes)
        _emit_scatter(vectors, source, args[2], args[3], results)
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def deal_row(typingctx, row, row_at, n_panels, out, out_at, step, target):
    """Copy a row into panels: ``out[p * step + r] = row[p * rows + r]``."""
    shape, index = literal_target(target), types.intp
    signature = types.void(row, index, index, out, index, index, target)

    def codegen(context, builder, signature, args):
        vectors = Vectors(context, builder, out.dtype, shape)
        source = vectors.pointer(row, args[0], args[1])
        result = vectors.pointer(out, args[3], args[4])

        def deal(p, carried):
            some = vectors.load(source, builder.mul(p, INT(shape.rows)), shape.rows)
            vectors.store(some, result, builder.mul(p, args[5]))
            return carried

        vectors.loop(args[2], [], deal)
        return context.get_dummy_value()

    return signature, codegen


def _emit_gather(vectors: Vectors, sources: list, depth, result, step) -> None:
    builder, width = vectors.builder, INT(vectors.lanes)
    whole = builder.sdiv(depth, width)
    start = builder.mul(whole, width)

    def square(n, carried):
        d = builder.mul(n, width)
        columns = vectors.interleave([vectors.load(row, d) for row in sources])
        for i, column in enumerate(vectors.split(columns, len(sources))):
            place = builder.mul(builder.add(d, INT(i)), step)
            vectors.store(column, result, place)
        return carried

    def rest(n, carried):
        d = builder.add(start, n)
        place = builder.mul(d, step)
        for i, row in enumerate(sources):
            vectors.copy(row, d, result, builder.add(place, INT(i)))
        return carried

    vectors.loop(whole, [], square)
    vectors.loop(builder.sub(depth, start), [], rest)


def _emit_scatter(vectors: Vectors, source, step, depth, results: list) -> None:
    builder, width = vectors.builder, INT(vectors.lanes)
    whole = builder.sdiv(depth, width)
    start = builder.mul(whole, width)

    def square(n, carried):
        d = builder.mul(n, width)
        columns = [
            vectors.load(source, builder.mul(builder.add(d, INT(i)), step))
            for i in range(vectors.lanes)
        ]
        rows = vectors.split(vectors.interleave(columns), vectors.lanes)
        for row, result in zip(rows, results, strict=True):
            vectors.store(row, result, d)
        return carried

    def rest(n, carried):
        d = builder.add(start, n)
        place = builder.mul(d, step)
        for i, row in enumerate(results):
            vectors.copy(source, builder.add(place, INT(i)), row, d)
        return carried

    vectors.loop(whole, [], square)
    vectors.loop(builder.sub(depth, start), [], rest)
