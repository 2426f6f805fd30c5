"""Keep the keys and values of every layer, in any kind of cache (chapters 10, 14).

A model has one cache per layer. What goes in is the key after its rotation, so
that no key is ever rotated again, and the value.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import DTypeLike

from flashlib.backends import Backend
from flashlib.cache import ContiguousCache, PagedCache, RingCache
from flashlib.cache.base import Cache
from flashlib.decode import flash_attention_decode, flash_attention_paged
from flashlib.errors import ArgumentError, shown
from flashlib.layout import split_heads
from flashlib.model.config import Qwen3Config

__all__ = ["ModelCache", "attend_to_cache", "check_cache"]


class ModelCache:
    """One cache per layer, all of one kind and one length.

    Parameters
    ----------
    layers : sequence of ContiguousCache, RingCache or PagedCache
        Empty ones of one row.

    Examples
    --------
    >>> cache = ModelCache.contiguous(Qwen3Config.qwen3_0_6b(), capacity=20)
    >>> len(cache.layers), cache.length
    (28, 0)
    """

    def __init__(self, layers: Sequence[Cache]):
        self.layers = tuple(layers)
        if not self.layers:
            raise ArgumentError(
                "layers has no caches; expected one per layer; a layer keeps its own "
                "keys and values"
            )

    @classmethod
    def contiguous(
        cls, config: Qwen3Config, capacity: int, dtype: DTypeLike = np.float32
    ) -> "ModelCache":
        """Return room for `capacity` tokens."""
        sizes = (1, capacity, config.n_kv_heads, config.head_dim)
        return cls([ContiguousCache(*sizes, dtype=dtype) for _ in range(config.layers)])

    @classmethod
    def ring(
        cls, config: Qwen3Config, window: int, dtype: DTypeLike = np.float32
    ) -> "ModelCache":
        """Return a cache that keeps the last `window` tokens."""
        sizes = (1, window, config.n_kv_heads, config.head_dim)
        return cls([RingCache(*sizes, dtype=dtype) for _ in range(config.layers)])

    @classmethod
    def paged(
        cls,
        config: Qwen3Config,
        num_blocks: int,
        block_len: int,
        dtype: DTypeLike = np.float32,
    ) -> "ModelCache":
        """Return `num_blocks` pages of `block_len` tokens in every layer."""
        sizes = (1, num_blocks, block_len, config.n_kv_heads, config.head_dim)
        return cls([PagedCache(*sizes, dtype=dtype) for _ in range(config.layers)])

    @property
    def length(self) -> int:
        """Tokens seen."""
        return int(self.layers[0].seqlens[0])

    @property
    def window(self) -> int | None:
        """Tokens kept, if this cache forgets, else None."""
        first = self.layers[0]
        return first.capacity if isinstance(first, RingCache) else None

    def check(self, config: Qwen3Config, n_new: int) -> None:
        """Raise unless the next `n_new` tokens of a model of these sizes fit.

        Raises
        ------
        ArgumentError
            If the cache belongs to another model, holds several texts, or would
            forget tokens that some of the new ones still attend.
        """
        want = (config.layers, 1, config.n_kv_heads, config.head_dim)
        first = self.layers[0]
        for n, layer in enumerate(self.layers):
            same = _sizes(layer), int(layer.seqlens.max(initial=0))
            if same != (_sizes(first), int(first.seqlens.max(initial=0))):
                raise ArgumentError(
                    f"cache has another layer {n} than layer 0; expected equal kinds, "
                    "sizes and lengths; a text fills all layers alike"
                )
        have = (len(self.layers), first.batch, first.n_kv_heads, first.head_dim)
        if have != want:
            raise ArgumentError(
                f"cache has layers, rows, n_kv_heads, head_dim = {have}; expected "
                f"{want}; a cache holds one text of one model"
            )
        if self.window is not None and n_new > 1 and self.length > 0:
            raise ArgumentError(
                f"token_ids has {n_new} tokens; expected 1; a ring of {self.window} "
                "would forget what the first of them attends; use decode"
            )

    def append(self, layer: int, k: np.ndarray, v: np.ndarray) -> None:
        """Add rotated keys and values of one layer, ``[n_new, kv_width]``."""
        cache = self.layers[layer]
        k, v = (split_heads(x, cache.n_kv_heads)[None] for x in (k, v))
        cache.append(k, v)


def check_cache(cache: object) -> None:
    """Raise unless it is the cache of a model.

    Raises
    ------
    ArgumentError
        If it is something else.
    """
    if not isinstance(cache, ModelCache):
        raise ArgumentError(
            f"cache has {shown(cache)}; expected a ModelCache; it holds the keys and "
            "values of every layer; make one with ModelCache.contiguous"
        )


def _sizes(layer: Cache) -> tuple:
    """What has to be the same in all layers."""
    room = getattr(layer, "free_blocks", None), layer.capacity
    return (
        type(layer),
        layer.batch,
        layer.n_kv_heads,
        layer.head_dim,
        layer.dtype,
        *room,
    )


def attend_to_cache(
    q: np.ndarray, cache: Cache, backend: Backend, num_splits: int | None
) -> np.ndarray:
    """Run the newest rows over one cache, whatever kind it is.

    Parameters
    ----------
    q : ndarray
        ``[1, n_new, n_heads, head_dim]``.
    cache : ContiguousCache, RingCache or PagedCache
        The new keys and values included.
    backend : Backend
    num_splits : int or None

    Returns
    -------
    ndarray
        ``[1, n_new, n_heads, head_dim]``.
    """
    live = np.minimum(cache.seqlens, cache.capacity)
    options = {"cache_seqlens": live, "num_splits": num_splits, "backend": backend}
    if isinstance(cache, PagedCache):
        table = cache.block_table
        return flash_attention_paged(
            q, cache.k, cache.v, block_table=table, **options
        ).out
    return flash_attention_decode(q, cache.k, cache.v, **options).out
