"""More answers to the exercises on the tiled loop (chapter 5)."""

import math
from itertools import count

import numpy as np

from flashlib.exercises.strip import Strip


def _row_by_row(
    q: np.ndarray, k: Strip, v: Strip, scale: float, tile: int
) -> list[float]:
    """Read single rows, but wait for the max of a tile all the same."""
    m, l, acc = -math.inf, 0.0, [0.0] * v.shape[1]
    for start in range(0, len(k), tile):
        places = range(start, min(start + tile, len(k)))
        s = [scale * float(k[j] @ q) for j in places]
        top = max(m, *s)
        corr = math.exp(m - top)
        l, acc, m = l * corr, [a * corr for a in acc], top
        for score, j in zip(s, places, strict=True):
            p = math.exp(score - m)
            l, acc = l + p, [a + p * x for a, x in zip(acc, v[j], strict=True)]
    return [a / l for a in acc]


def _padded(q: np.ndarray, k: Strip, v: Strip, scale: float, tile: int) -> np.ndarray:
    """Read whole tiles, values first, and hide what lies behind the last key."""
    m, l, acc = -np.inf, 0.0, np.zeros(v.shape[1])
    for start in range(0, len(k), tile):
        there = np.arange(start, start + tile) < len(k)
        values = np.where(there[:, None], v[start : start + tile], 0)
        s = np.where(there, scale * (k[start : start + tile] @ q), -np.inf)
        top = max(m, s.max())
        corr, p = np.exp(m - top), np.exp(s - top)
        m, l, acc = top, l * corr + p.sum(), acc * corr + p @ values
    return acc / l


LOOP_RIGHT = {"row_by_row": _row_by_row, "padded": _padded}
ROWS_WRONG = {
    "rounded_to_nearest": lambda d, c: max(1, round(2 * d / c)),
    "one_row_more": lambda d, c: 2 * d // c + 1,
}
ROWS_RIGHT = {
    "ceiling": lambda d, c: np.ceil(2 * d / c),
    "counts_up": lambda d, c: next(r for r in count(1) if 2 * d <= c * r),
}
