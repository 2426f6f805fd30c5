"""Multiply by a block of lanes in plain loops, four rows at a time (chapter 9).

The function names sixteen numbers of the left operand before it runs along the
lanes. What it cannot say is that the four rows of results should stay in
registers: they go to the first-level cache and back for every four steps of the
shared dimension. :mod:`flashlib.kernels.microkernel` says it.
"""

from flashlib.kernels.jit import inner

__all__ = ["LANES", "SQUARE_SIDE", "multiply"]

# Query rows of a tile.
LANES = 32
# `multiply` takes the left operand in squares of so many rows and columns.
SQUARE_SIDE = 4


@inner
def multiply(left, by_row, by_depth, right, out):
    """Write ``out[r, lane] = sum_d left[r, d] * right[d, lane]``.

    The left operand is flat: (r, d) stands at ``r * by_row + d * by_depth``.

    compiler: four rows are one flat piece, so that the distance of any two of its
    numbers is a constant. With four separate rows the compiler would have to prove,
    pair by pair, that they do not overlap; it gives up and makes no vectors.
    """
    out[:] = 0
    sums, lanes, e = out.reshape(-1), right.reshape(-1), by_depth
    for r in range(0, len(out), SQUARE_SIDE):
        o = sums[r * LANES : (r + SQUARE_SIDE) * LANES]
        for d in range(0, len(right), SQUARE_SIDE):
            x = lanes[d * LANES : (d + SQUARE_SIDE) * LANES]
            four = left[r * by_row + d * e :]
            a0, a1, a2, a3 = four[0], four[e], four[2 * e], four[3 * e]
            four = four[by_row:]
            b0, b1, b2, b3 = four[0], four[e], four[2 * e], four[3 * e]
            four = four[by_row:]
            c0, c1, c2, c3 = four[0], four[e], four[2 * e], four[3 * e]
            four = four[by_row:]
            d0, d1, d2, d3 = four[0], four[e], four[2 * e], four[3 * e]
            for i in range(LANES):
                x0, x1 = x[i], x[LANES + i]
                x2, x3 = x[2 * LANES + i], x[3 * LANES + i]
                o[i] += a0 * x0 + a1 * x1 + a2 * x2 + a3 * x3
                o[LANES + i] += b0 * x0 + b1 * x1 + b2 * x2 + b3 * x3
                o[2 * LANES + i] += c0 * x0 + c1 * x1 + c2 * x2 + c3 * x3
                o[3 * LANES + i] += d0 * x0 + d1 * x1 + d2 * x2 + d3 * x3
