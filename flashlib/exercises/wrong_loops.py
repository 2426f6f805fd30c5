"""Loops over tiles that a checker has to refuse, by their faults (chapter 5)."""

from collections.abc import Callable
from types import MappingProxyType

import numpy as np

from flashlib.exercises.strip import Strip

State = tuple[float, float, np.ndarray]


def _repair(m: float, l: float, acc: np.ndarray, m_tile: float) -> State:
    if m_tile <= m:
        return m, l, acc
    corr = np.exp(m - m_tile)
    return m_tile, l * corr, acc * corr


def _loop(
    repair: Callable = _repair,
    start_at: float = -np.inf,
    n_tiles: Callable = lambda n, tile: -(-n // tile),
    cut: Callable = min,
    scaled: bool = True,
) -> Callable:
    """Return the loop with one part of it replaced."""

    def attend_row(
        q: np.ndarray, k: Strip, v: Strip, scale: float, tile: int
    ) -> np.ndarray:
        m, l, acc = start_at, 0.0, np.zeros(v.shape[1])
        for t in range(n_tiles(len(k), tile)):
            keys = slice(t * tile, cut(t * tile + tile, len(k)))
            s = (scale if scaled else 1.0) * (k[keys] @ q)
            m, l, acc = repair(m, l, acc, s.max())
            p = np.exp(s - m)
            l, acc = l + p.sum(), acc + p @ v[keys]
        return acc / l

    return attend_row


def _l_not_rescaled(m: float, l: float, acc: np.ndarray, m_tile: float) -> State:
    new, _, acc = _repair(m, l, acc, m_tile)
    return new, l, acc


def _acc_not_rescaled(m: float, l: float, acc: np.ndarray, m_tile: float) -> State:
    m, l, _ = _repair(m, l, acc, m_tile)
    return m, l, acc


def _inverse_rescale(m: float, l: float, acc: np.ndarray, m_tile: float) -> State:
    corr = np.exp(m_tile - m) if l and m_tile > m else 1.0
    return max(m, m_tile), l * corr, acc * corr


def _max_replaced_first(m: float, l: float, acc: np.ndarray, m_tile: float) -> State:
    m = max(m, m_tile)
    corr = np.exp(m - m)
    return m, l * corr, acc * corr


def _always_the_tile(m: float, l: float, acc: np.ndarray, m_tile: float) -> State:
    corr = np.exp(m - m_tile)
    return m_tile, l * corr, acc * corr


def _whole_row(
    q: np.ndarray, k: Strip, v: Strip, scale: float, tile: int
) -> np.ndarray:
    s = scale * (k[:] @ q)
    p = np.exp(s - s.max())
    return p @ v[:] / p.sum()


def _two_walks(
    q: np.ndarray, k: Strip, v: Strip, scale: float, tile: int
) -> np.ndarray:
    m = max(scale * (k[j] @ q) for j in range(len(k)))
    p = np.array([np.exp(scale * (k[j] @ q) - m) for j in range(len(k))])
    return sum(p[j] * v[j] for j in range(len(k))) / p.sum()


def _fixed(**own: float) -> Callable:
    """Return the right loop, deaf to what it is told."""

    def attend_row(
        q: np.ndarray, k: Strip, v: Strip, scale: float, tile: int
    ) -> np.ndarray:
        return _loop()(q, k, v, **{"scale": scale, "tile": tile, **own})

    return attend_row


WRONG_LOOPS = MappingProxyType(
    {
        "whole_row": _whole_row,
        "two_walks": _two_walks,
        "l_not_rescaled": _loop(_l_not_rescaled),
        "acc_not_rescaled": _loop(_acc_not_rescaled),
        "inverse_rescale": _loop(_inverse_rescale),
        "max_replaced_first": _loop(_max_replaced_first),
        "always_the_tile": _loop(_always_the_tile),
        "starts_at_zero": _loop(start_at=0.0),
        "dropped_last_tile": _loop(n_tiles=lambda n, tile: max(1, n // tile)),
        "reads_past_the_end": _loop(cut=lambda stop, n: stop),
        "unscaled": _loop(scaled=False),
        "scale_of_the_row": _fixed(scale=0.5),
        "key_by_key": _fixed(tile=1),
    }
)
