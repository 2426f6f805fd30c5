"""Caches to test, tokens to put into them, and what is in them afterwards."""

import numpy as np
import pytest

from flashlib import ContiguousCache, PagedCache, RingCache

SIZES = {"n_kv_heads": 2, "head_dim": 3, "head_dim_v": 4}


def tokens(batch, n, seed=0, dtype=np.float32):
    random = np.random.default_rng(seed)
    k = random.standard_normal((batch, n, 2, 3)).astype(dtype)
    return k, random.standard_normal((batch, n, 2, 4)).astype(dtype)


def state(cache):
    """Everything that a refused call must leave as it was."""
    parts = [cache.k.tobytes(), cache.v.tobytes(), cache.seqlens.tolist(), cache.batch]
    if isinstance(cache, PagedCache):
        parts += [cache.block_table.tolist(), cache.free_blocks]
    return parts


def row_of(cache, b):
    """The live tokens of one row, read as attention reads them."""
    length = int(cache.seqlens[b])
    if not isinstance(cache, PagedCache):
        live = min(length, cache.capacity)
        return cache.k[b, :live], cache.v[b, :live]
    pages = cache.block_table[b][: -(-length // cache.block_len)]
    return tuple(
        x[pages].reshape(-1, *x.shape[2:])[:length] for x in (cache.k, cache.v)
    )


MAKE = {
    "contiguous": lambda: ContiguousCache(2, 8, **SIZES),
    "ring": lambda: RingCache(2, 8, **SIZES),
    "paged": lambda: PagedCache(2, 9, 2, **SIZES),
}
every_cache = pytest.mark.parametrize("make", MAKE.values(), ids=list(MAKE))
