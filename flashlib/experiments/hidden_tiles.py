"""Hide tiles of a row from three programs, and name what they answer (chapter 18).

The row has three tiles. Each of them is hidden or not as a whole, and the first one
may hold NaN in a key or in a value.
"""

import numpy as np

from flashlib.programs import attention_cte
from flashlib.programs.cache_call import decode_slots

__all__ = ["decode", "draw", "name_of", "prefill"]

TILES = 3
# Keys per tile: one block of the decode kernel, one tile of the prefill kernel.
DECODE, PREFILL = 128, 512


def draw(tile: int, poison: str | None = None) -> tuple[np.ndarray, ...]:
    """Draw q, k and v of three tiles, ``[rows, 1, 8]``, the same every time.

    Parameters
    ----------
    tile : int
        Keys per tile.
    poison : str, optional
        ``"key"`` or ``"value"``: what is NaN in the first row of the first tile.
    """
    rng = np.random.default_rng(3)
    q, k, v = (
        rng.normal(size=(rows, 1, 8)).astype(np.float32)
        for rows in (1, TILES * tile, TILES * tile)
    )
    if poison is not None:
        {"key": k, "value": v}[poison][0] = np.nan
    return q, k, v


def decode(mask: np.ndarray, poison: str | None = None, hardened: bool = False) -> str:
    """Let the decode kernel answer; `mask` has one flag per tile."""
    q, k, v = draw(DECODE, poison)
    call = {"mask": mask.repeat(DECODE)[None, None], "tile": DECODE, "scale": 1.0}
    out = decode_slots(q, k, v, **call, hardened=hardened).out[0, 0]
    return name_of(out, mask, DECODE)


def prefill(mask: np.ndarray, poison: str | None = None) -> str:
    """Let the prefill kernel answer; it takes the mask as a first and a last key."""
    q, k, v = (x.transpose(1, 0, 2) for x in draw(PREFILL, poison))
    first, last = np.flatnonzero(mask)[[0, -1]] if mask.any() else (0, -1)
    call = {
        "bound_min": np.array([[PREFILL * first]]),
        "bound_max": np.array([[PREFILL * (last + 1)]]),
    }
    out = attention_cte(q, k, v, scale=1.0, causal=False, **call).out[0, 0]
    return name_of(out, mask, PREFILL)


def name_of(out: np.ndarray, mask: np.ndarray, tile: int) -> str:
    """Name an answer: ``NaN``, ``right``, ``0`` or ``mean of V``."""
    if np.isnan(out).any():
        return "NaN"
    q, k, v = (x[:, 0] for x in draw(tile))
    names = {"0": np.zeros(8), "mean of V": v.mean(axis=0)}
    if mask.any():
        kept = mask.repeat(tile)
        s = k[kept] @ q[0]
        p = np.exp(s - s.max())
        names["right"] = p @ v[kept] / p.sum()
    return next(name for name, x in names.items() if np.allclose(out, x, atol=0.02))
