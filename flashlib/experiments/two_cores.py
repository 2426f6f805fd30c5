"""Run one decode step on one core or on two (chapter 22)."""

from functools import cache

import numpy as np

from flashlib.machine.dtypes import BFLOAT16
from flashlib.machine.timeline import Timeline, timelines
from flashlib.programs.attention_tkg import TkgResult
from flashlib.programs.cache_call import decode_cached

__all__ = ["HEADS", "KEYS", "WIDTH", "decode_inputs", "decode_on"]

HEADS, WIDTH = 8, 128
KEYS = (512, 1024, 2048, 4096, 8192)


@cache
def decode_inputs(keys: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return queries and a cache in bfloat16, the same for every number of cores."""
    rng = np.random.default_rng(22)
    q = rng.standard_normal((1, HEADS, 1, WIDTH)) / WIDTH**0.5
    k, v = rng.standard_normal((2, 1, keys, WIDTH))
    return tuple(x.astype(np.float32).astype(BFLOAT16) for x in (q, k, v))


@cache
def decode_on(cores: int, keys: int) -> tuple[TkgResult, tuple[Timeline, ...]]:
    """Return the result of one decode step, and the timeline of every core."""
    result = decode_cached(*decode_inputs(keys), lnc=cores)
    return result, timelines(result.traces)
