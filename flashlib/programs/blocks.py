"""Spread, reduce and broadcast over partitions: what lanes cannot do (chapters 15, 17).

Every function takes the machine first and returns a tensor on chip. Lanes do not
meet on the vector engine, so whatever crosses partitions is a matrix product, a
transpose, a shuffle inside 32 rows, or a DMA.
"""

import math

import numpy as np

from flashlib.errors import ArgumentError
from flashlib.machine.dtypes import FLOAT32_MIN
from flashlib.machine.machine import Machine
from flashlib.machine.tile import Tile

__all__ = [
    "PARTITIONS",
    "QUADRANT",
    "SUM_VARIANTS",
    "broadcast_column",
    "broadcast_row",
    "column_to_row",
    "max_over_partitions",
    "over_partitions",
    "pieces",
    "sum_beside_values",
    "sum_by_matmul",
    "sum_ones_moving",
    "sum_ones_stationary",
]

PARTITIONS = 128
QUADRANT = 32


def over_partitions(m: Machine, rows: Tile, columns: int | None = None) -> Tile:
    """Load rows from HBM so that row ``128 t + p`` lies on partition p, block t.

    Parameters
    ----------
    rows : Tile
        ``[n_rows, width]`` in HBM.
    columns : int, optional
        Width on chip; what lies beyond ``width`` is filled with ones.

    Returns
    -------
    Tile
        ``[128, ceil(n_rows / 128), columns]`` in SBUF; missing rows are 0.
    """
    n_rows, width = rows.shape
    blocks = -(-n_rows // PARTITIONS)
    full, rest = divmod(n_rows, PARTITIONS)
    out = m.sbuf.alloc((PARTITIONS, blocks, columns or width), rows.dtype)
    if columns and columns > width:
        m.isa.memset(out[:, :, width:], 1.0)
    if full:
        whole = (
            rows[: full * PARTITIONS]
            .reshape(full, PARTITIONS, width)
            .permute((1, 0, 2))
        )
        m.isa.dma_copy(out[:, :full, :width], whole)
    if rest:
        m.isa.memset(out[:, full, :width], 0.0)
        m.isa.dma_copy(out[:rest, full, :width], rows[full * PARTITIONS :])
    return out


def max_over_partitions(m: Machine, tile: Tile, out: Tile | None = None) -> Tile:
    """Take the maximum of each column: transpose, then reduce along the free axis.

    On NeuronCore-v2 a transpose multiplies, and 0 times -inf is NaN: there the
    lowest float32 takes the place of -inf, also in the result.

    Parameters
    ----------
    tile : Tile
        ``[128, columns]`` float32 in SBUF, at most 128 columns.

    Returns
    -------
    Tile
        ``[columns, 1]`` in SBUF: one column became one partition.
    """
    columns = tile.free_size
    out = m.sbuf.alloc((columns, 1)) if out is None else out
    with m.sbuf.scope(), m.psum.scope():
        if m.spec.generation < 3:
            finite = m.sbuf.alloc(tile.shape, tile.dtype)
            tile = m.isa.tensor_scalar(finite, tile, "maximum", FLOAT32_MIN)
        flipped = m.psum.alloc((columns, tile.partitions), tile.dtype)
        m.isa.nc_transpose(flipped, tile, engine="tensor")
        return m.isa.tensor_reduce(out, "maximum", flipped, axis=1)


def broadcast_column(m: Machine, column: Tile, out: Tile | None = None) -> Tile:
    """Turn a column ``[columns, 1]`` into 128 equal rows ``[128, columns]``.

    The copy repeats each value along the free axis, where step 0 is legal; the
    transpose then turns that axis into partitions.
    """
    n = column.partitions
    out = m.sbuf.alloc((PARTITIONS, n), column.dtype) if out is None else out
    with m.sbuf.scope(), m.psum.scope():
        wide = m.sbuf.alloc((n, PARTITIONS), column.dtype)
        m.isa.tensor_copy(wide, column.broadcast_to((n, PARTITIONS)))
        flipped = m.psum.alloc((PARTITIONS, n), column.dtype)
        m.isa.nc_transpose(flipped, wide, engine="tensor")
        return m.isa.tensor_copy(out, flipped)


def column_to_row(m: Machine, column: Tile, row: Tile) -> Tile:
    """Turn ``[n, 1]`` into ``[1, n]`` on the vector engine, 32 values at a time."""
    for start in range(0, column.partitions, QUADRANT):
        stop = min(start + QUADRANT, column.partitions)
        m.isa.nc_transpose(row[:, start:stop], column[start:stop], engine="vector")
    return row


def broadcast_row(m: Machine, row: Tile) -> Tile:
    """Copy the row ``[1, n]`` of partition 0 to all partitions by four shuffles."""
    out = m.sbuf.alloc((PARTITIONS, row.free_size), row.dtype)
    for start in range(0, PARTITIONS, QUADRANT):
        m.isa.nc_stream_shuffle(out[start : start + QUADRANT], row, [0] * QUADRANT)
    return out


def sum_ones_moving(
    m: Machine, p: Tile, out: Tile | None = None, ones: Tile | None = None
) -> Tile:
    """Sum over partitions and blocks with p as the stationary operand.

    One product per block, one lit column of the array: ``p[:, t].T @ ones``. The
    sums of the blocks are then added on the vector engine.

    Parameters
    ----------
    p : Tile
        ``[128, blocks, columns]`` in SBUF, at most 128 columns.
    out : Tile, optional
        Where the sums go, ``[columns, 1]``.
    ones : Tile, optional
        ``[128, 1]`` in the type of p; made here unless given.

    Returns
    -------
    Tile
        ``[columns, 1]`` float32 in SBUF.
    """
    _, blocks, columns = p.shape
    out = m.sbuf.alloc((columns, 1)) if out is None else out
    with m.sbuf.scope(), m.psum.scope():
        if ones is None:
            ones = m.isa.memset(m.sbuf.alloc((PARTITIONS, 1), p.dtype), 1.0)
        parts = m.psum.alloc((columns, blocks))
        for t in range(blocks):
            m.isa.nc_matmul(parts[:, t : t + 1], stationary=p[:, t], moving=ones)
        return m.isa.tensor_reduce(out, "add", parts, axis=1)


def sum_ones_stationary(m: Machine, p: Tile) -> Tile:
    """Sum with a block of ones, 128 wide, as the stationary operand.

    ``ones.T @ p[:, t]`` accumulated in PSUM: every partition receives the sums, so
    nothing has to be broadcast afterwards. Up to 512 columns.

    Returns
    -------
    Tile
        ``[128, columns]`` float32 in SBUF, all rows equal.
    """
    _, blocks, columns = p.shape
    out = m.sbuf.alloc((PARTITIONS, columns))
    with m.sbuf.scope(), m.psum.scope():
        ones = m.sbuf.alloc((PARTITIONS, PARTITIONS), p.dtype)
        m.isa.memset(ones, 1.0)
        total = m.psum.alloc((PARTITIONS, columns))
        for t in range(blocks):
            m.isa.nc_matmul(total, stationary=ones, moving=p[:, t], accumulate=t > 0)
        return m.isa.tensor_copy(out, total)


def sum_beside_values(m: Machine, p: Tile, values: Tile) -> Tile:
    """Sum with a column of ones beside V: the product with V brings the sum along.

    No product more than without the sum, as long as ``head_dim_v + 1`` columns fit
    into the 128 of the array.

    Parameters
    ----------
    p : Tile
        ``[128, blocks, columns]``.
    values : Tile
        ``[128, blocks, head_dim_v + 1]``, the last column ones
        (``over_partitions(..., columns=head_dim_v + 1)``).

    Returns
    -------
    Tile
        ``[head_dim_v + 1, columns]`` float32 in SBUF: weighted sums of V, not yet
        normalized, and the sums of p in the last row.
    """
    _, blocks, columns = p.shape
    out = m.sbuf.alloc((values.shape[2], columns))
    with m.psum.scope():
        total = m.psum.alloc(out.shape)
        for t in range(blocks):
            m.isa.nc_matmul(
                total, stationary=values[:, t], moving=p[:, t], accumulate=t > 0
            )
        return m.isa.tensor_copy(out, total)


SUM_VARIANTS = ("ones moving", "ones stationary", "ones beside values")


def sum_by_matmul(
    m: Machine, p: Tile, variant: str = "ones moving", values: Tile | None = None
) -> np.ndarray:
    """Sum over partitions and blocks in one of three ways; return the sums, copied out.

    Parameters
    ----------
    p : Tile
        ``[128, blocks, columns]`` in SBUF.
    variant : str
        One of ``SUM_VARIANTS``.
    values : Tile, optional
        V with its column of ones, for the third variant only.

    Returns
    -------
    ndarray
        ``[columns]`` float32.

    Examples
    --------
    >>> m = Machine()
    >>> p = m.sbuf.put(np.ones((128, 2, 3), np.float32))
    >>> sum_by_matmul(m, p, "ones stationary")
    array([256., 256., 256.], dtype=float32)
    """
    if variant not in SUM_VARIANTS or (values is None) == (variant == SUM_VARIANTS[2]):
        raise ArgumentError(
            f"variant has {variant!r}; expected one of {', '.join(SUM_VARIANTS)}, with "
            "values for the last and for no other; the ones stand beside them; pass "
            "values with the last only"
        )
    if variant == "ones moving":
        return sum_ones_moving(m, p).numpy()[:, 0]
    if variant == "ones stationary":
        return sum_ones_stationary(m, p).numpy()[0]
    return sum_beside_values(m, p, values).numpy()[-1]


def pieces(columns: int, most: int = PARTITIONS) -> list[slice]:
    """Cut columns into pieces of at most ``most``.

    Examples
    --------
    >>> pieces(300)
    [slice(0, 128, None), slice(128, 256, None), slice(256, 300, None)]
    """
    return [
        slice(i * most, min((i + 1) * most, columns))
        for i in range(math.ceil(columns / most))
    ]
