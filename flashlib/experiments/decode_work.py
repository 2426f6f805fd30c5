"""Count what each engine does in one decode step (chapter 16)."""

from functools import cache

import numpy as np

from flashlib.machine import timeline
from flashlib.machine.dtypes import BFLOAT16
from flashlib.programs import decode_tile

__all__ = ["ITEMSIZE", "KEYS", "WIDTH", "WORKERS", "decode_work"]

KEYS, WIDTH, ITEMSIZE = 2048, 128, 2
# Who may be the one that works longest.
WORKERS = ("load K and V", "vector", "tensor", "scalar")


@cache
def decode_work(group: int, tokens: int, keys: int = KEYS) -> dict[str, float]:
    """Run one decode step in bfloat16 and read its trace.

    Parameters
    ----------
    group : int
        Query heads over the one key and value head.
    tokens : int
        New tokens.
    keys : int
        Length of the cache.

    Returns
    -------
    dict of str to float
        ``flops`` and ``cache_bytes``; ``products``, the ns of the matrix products
        alone; and the ns of work of each of `WORKERS`.
    """
    rng = np.random.default_rng(16)
    shapes = (tokens, group, WIDTH), (keys, 1, WIDTH), (keys, 1, WIDTH)
    q, k, v = (rng.standard_normal(s).astype(BFLOAT16) for s in shapes)
    trace = decode_tile(q, k, v).trace
    line = timeline(trace)
    busy = line.busy()
    return {
        "flops": trace.flops("mm1") + trace.flops("mm2"),
        "cache_bytes": trace.bytes(step="k_load") + trace.bytes(step="v_load"),
        "products": line.busy("mm1", "sum", "mm2")["tensor"],
        "load K and V": line.busy("k_load", "v_load")["dma"],
        **{engine: busy[engine] for engine in ("vector", "tensor", "scalar")},
    }
