"""The other ways to compute one attention call: a segment, a batch row, pages."""

from dataclasses import dataclass

import numpy as np

import flashlib
from flashlib.output import AttentionOutput


class NotExpressible(Exception):
    """The function has no argument for this, or no room for these lengths."""


def engines():
    """Return the backends that compute these functions here."""
    return flashlib.available_backends()


@dataclass(frozen=True)
class Segment:
    """One segment of packed rows, with a segment of junk on both sides."""

    backend: str

    def __call__(self, q, k, v, **options) -> AttentionOutput:
        options = expressible(options)
        q, k, v = (np.asarray(x) for x in (q, k, v))
        packed = [np.concatenate([junk(x, 3), x, junk(x, 2)]) for x in (q, k, v)]
        bounds = [[0, 3, 3 + len(x), 5 + len(x)] for x in (q, k)]
        out, lse = flashlib.flash_attention_varlen(
            *packed,
            cu_seqlens_q=bounds[0],
            cu_seqlens_k=bounds[1],
            backend=self.backend,
            **options,
        )
        return AttentionOutput(out[3 : 3 + len(q)].copy(), lse[3 : 3 + len(q)].copy())


@dataclass(frozen=True)
class BatchRow:
    """One row of a decode batch, in a cache with junk behind its last key."""

    backend: str
    num_splits: int | None = None
    spare: int = 3

    def __call__(self, q, k, v, **options) -> AttentionOutput:
        options = expressible(options)
        q, k, v = (np.asarray(x) for x in (q, k, v))
        if len(q) > len(k):
            raise NotExpressible("new tokens count as live")
        caches = [np.concatenate([x, junk(x, self.spare)]) for x in (k, v)]
        out, lse = flashlib.flash_attention_decode(
            *(np.stack([x, junk(x, len(x))]) for x in (q, *caches)),
            cache_seqlens=[len(k), len(q)],
            num_splits=self.num_splits,
            backend=self.backend,
            **{"causal": False, **options},
        )
        return AttentionOutput(out[0].copy(), lse[0].copy())


@dataclass(frozen=True)
class Pages:
    """One sequence in pages, shuffled, with junk in every slot that is not live."""

    backend: str
    block_len: int
    num_splits: int | None = None

    def __call__(self, q, k, v, **options) -> AttentionOutput:
        options = expressible(options)
        q, k, v = (np.asarray(x) for x in (q, k, v))
        if len(q) > len(k):
            raise NotExpressible("new tokens count as live")
        n_pages = -(-len(k) // self.block_len)
        order = np.random.default_rng(len(k)).permutation(n_pages + 2)
        table = np.append(order[:n_pages], [-1, 2**31 - 1]).reshape(1, -1)
        out, lse = flashlib.flash_attention_paged(
            q[None],
            *(in_pages(x, order, self.block_len) for x in (k, v)),
            block_table=table,
            cache_seqlens=[len(k)],
            num_splits=self.num_splits,
            backend=self.backend,
            **{"causal": False, **options},
        )
        return AttentionOutput(out[0], lse[0])


def expressible(options: dict) -> dict:
    """Drop what changes only rounding, refuse what these functions do not take."""
    rest = {name: value for name, value in options.items() if name != "tile"}
    if rest.get("mask") is not None or rest.get("bias") is not None:
        raise NotExpressible("no mask and no bias")
    return {name: x for name, x in rest.items() if name not in ("mask", "bias")}


def junk(like: np.ndarray, n: int) -> np.ndarray:
    """Return `n` tokens of NaN."""
    return np.full((n, *like.shape[1:]), np.nan, like.dtype)


def in_pages(x: np.ndarray, order: np.ndarray, block_len: int) -> np.ndarray:
    """Lay tokens out in the pages of `order`; other pages and slots hold NaN."""
    pages = junk(x, len(order) * block_len)
    for t, token in enumerate(x):
        pages[order[t // block_len] * block_len + t % block_len] = token
    return pages.reshape(len(order), block_len, *x.shape[1:])


def cached_ways():
    """Return all of them, for every backend."""
    ways = []
    for backend in engines():
        ways += [Segment(backend)]
        ways += [BatchRow(backend, splits) for splits in (None, 1, 2, 3)]
        ways += [Pages(backend, *sizes) for sizes in ((1, None), (2, 3), (3, 1))]
    return ways
