"""Keep keys and values of earlier tokens, in one of three ways (chapter 14)."""

from flashlib.cache.contiguous import ContiguousCache
from flashlib.cache.paged import PagedCache
from flashlib.cache.ring import RingCache

__all__ = ["ContiguousCache", "PagedCache", "RingCache"]
