"""Say how many additions follow one another before a sum starts anew (chapter 5).

In a long chain of additions rounding errors pile up. So keys are taken in
tiles, each summed from zero; the sums of tiles join in chains; and the sums
of chains join once more.
"""

import math

__all__ = ["CHAIN", "DEFAULT_TILE", "STRETCH", "longest_tile", "shortest_tile"]

# Keys per tile unless the caller says otherwise.
DEFAULT_TILE = 64
# Tiles per chain.
CHAIN = 64
# Keys per chain.
STRETCH = CHAIN * DEFAULT_TILE


def longest_tile(seq_k: int) -> int:
    """Return how many keys may be summed in one go.

    Beyond one stretch a tile grows with the square root, so that the sums of
    tiles do not become a long chain in their turn.

    Examples
    --------
    >>> longest_tile(4096), longest_tile(160_000)
    (64, 400)
    """
    return max(DEFAULT_TILE, math.isqrt(seq_k))


def shortest_tile(seq_k: int) -> int:
    """Return how many keys should at least be summed in one go.

    Examples
    --------
    >>> shortest_tile(640), shortest_tile(4096), shortest_tile(160_000)
    (10, 64, 400)
    """
    return min(seq_k // CHAIN, longest_tile(seq_k))
