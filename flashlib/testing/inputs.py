"""Inputs that are the same everywhere: seeded, hashed, published (chapter 8)."""

import numpy as np

__all__ = ["make_qkv", "pseudo_random", "published_qkv"]


def make_qkv(
    seq_q: int,
    seq_k: int | None = None,
    *,
    n_heads: int = 4,
    n_kv_heads: int = 2,
    head_dim: int = 8,
    head_dim_v: int | None = None,
    dtype: np.typing.DTypeLike = np.float32,
    seed: int = 0,
    heat: float = 1.0,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return seeded normal q, k and v.

    Parameters
    ----------
    seq_q, seq_k : int
        Lengths; `seq_k` defaults to `seq_q`.
    n_heads, n_kv_heads, head_dim, head_dim_v : int
        Sizes; `head_dim_v` defaults to `head_dim`.
    dtype : dtype
        Any float type of flashlib.
    seed : int
        Same seed, same numbers.
    heat : float
        Multiplies q and k, so that scores grow with its square.

    Returns
    -------
    tuple of ndarray
        ``[seq_q, n_heads, head_dim]``, ``[seq_k, n_kv_heads, head_dim]``,
        ``[seq_k, n_kv_heads, head_dim_v]``.
    """
    random = np.random.default_rng(seed)
    seq_k = seq_q if seq_k is None else seq_k
    width_v = head_dim if head_dim_v is None else head_dim_v
    q = heat * random.standard_normal((seq_q, n_heads, head_dim))
    k = heat * random.standard_normal((seq_k, n_kv_heads, head_dim))
    v = random.standard_normal((seq_k, n_kv_heads, width_v))
    return q.astype(dtype), k.astype(dtype), v.astype(dtype)


def pseudo_random(seed: int, size: int) -> np.ndarray:
    """Return `size` float32 numbers in (-1, 1), the same on every machine.

    Element i is a 32-bit hash of ``(seed, i)``: a multiplicative counter, then
    two rounds of xor-shift and multiply (the finalizer of MurmurHash3). Its
    upper 24 bits, which is what a float32 holds, place it in the interval.

    Examples
    --------
    >>> x = pseudo_random(11, 1000)
    >>> bool((abs(x) < 1).all()), bool(abs(x.mean()) < 0.05)
    (True, True)
    """
    with np.errstate(over="ignore"):
        x = np.arange(1, size + 1, dtype=np.uint32) * np.uint32(0x9E3779B9)
        x ^= np.uint32(seed) * np.uint32(0x85EBCA6B)
        x = (x ^ (x >> np.uint32(16))) * np.uint32(0x85EBCA6B)
        x = (x ^ (x >> np.uint32(13))) * np.uint32(0xC2B2AE35)
        x ^= x >> np.uint32(16)
    top = (x >> np.uint32(8)).astype(np.float64)
    return ((top + 0.5) * 2.0**-23 - 1).astype(np.float32)


def published_qkv(seq: int, index: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the inputs of the published check at 16/8 heads of 128.

    The published check takes lengths 1, 17 and 100 with seeds 11, 23 and 37
    plus the index of the length; its generator is not printed, so the numbers
    come from :func:`pseudo_random`.
    """
    sizes = ((11, 16), (23, 8), (37, 8))
    q, k, v = (
        pseudo_random(seed + index, seq * heads * 128).reshape(seq, heads, 128)
        for seed, heads in sizes
    )
    return q, k, v
