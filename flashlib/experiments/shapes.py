"""Count loads, registers and bytes by the shape of a tile (chapter 9)."""

from collections.abc import Iterable
from fractions import Fraction
from typing import NamedTuple

from flashlib.traffic import Pass, attention_flops, causal_pairs, crossings

__all__ = ["TileBytes", "flop_per_byte", "loads_per_fma", "registers", "tile_bytes"]


def loads_per_fma(rows: int, vectors: int) -> Fraction:
    """Return the loads per multiply-add of a register tile.

    A step of the shared dimension loads one number for each row and one vector for
    each column of vectors, and issues ``rows * vectors`` multiply-adds.

    Examples
    --------
    >>> loads_per_fma(1, 1), loads_per_fma(4, 3)
    (Fraction(2, 1), Fraction(7, 12))
    """
    return Fraction(rows + vectors, rows * vectors)


def registers(rows: int, vectors: int) -> int:
    """Return the vector registers of a tile: sums, one row of operands, one number.

    Examples
    --------
    >>> registers(4, 3)
    16
    """
    return rows * vectors + vectors + 1


class TileBytes(NamedTuple):
    """What a walk over tiles touches again and again, in bytes.

    Attributes
    ----------
    near : int
        Touched in every product: a tile of scores, and the queries of one block.
    far : int
        Touched once per block: a tile of keys and values, and the queries and the
        numerators of all blocks.
    """

    near: int
    far: int


def tile_bytes(
    lanes: int, tile: int, head_dim: int, blocks: int = 1, itemsize: int = 4
) -> TileBytes:
    """Return the working set of `blocks` blocks of lanes that share a tile of keys.

    Examples
    --------
    >>> tile_bytes(lanes=24, tile=64, head_dim=128, blocks=4)
    TileBytes(near=18432, far=163840)
    """
    near = (tile + head_dim) * lanes
    far = 2 * tile * head_dim + blocks * 2 * head_dim * lanes
    return TileBytes(itemsize * near, itemsize * far)


def flop_per_byte(
    n: int, rows: int, head_dim: int, passes: Iterable[Pass] = (), itemsize: int = 4
) -> float:
    """Return the useful operations per byte of a causal prefill of one head.

    Parameters
    ----------
    n : int
        Tokens.
    rows : int
        Query rows that share each key and value once it is read.
    head_dim : int
    passes : iterable of Pass
        Over a score matrix, where there is one; it is square.
    itemsize : int

    Examples
    --------
    >>> flop_per_byte(511, 1, 128), flop_per_byte(511, 32, 128)
    (0.5, 16.0)
    """
    pairs = causal_pairs(n)
    visits = pairs / rows if rows < n else n
    n_bytes = itemsize * (2 * head_dim * visits + crossings(passes) * n * n)
    return attention_flops(pairs, 1, head_dim) / n_bytes
