"""Run the attention of one layer: one operation, or ten for every head (chapter 10)."""

import math

import numpy as np

from flashlib.errors import Refused
from flashlib.model.cache import ModelCache
from flashlib.model.config import Qwen3Config
from flashlib.model.operations import Operations

__all__ = ["attend", "check_window", "materialize_heads"]


def attend(
    ops: Operations,
    config: Qwen3Config,
    layer: int,
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    cache: ModelCache,
) -> np.ndarray:
    """Put new keys and values into the cache, and run the new queries.

    A prompt runs over its own keys, which are the whole text. Tokens that come
    after others run over the cache, in one fused operation with either engine.

    Parameters
    ----------
    ops : Operations
    config : Qwen3Config
    layer : int
    q, k, v : ndarray
        Normalized and rotated, ``[seq, n_heads * head_dim]`` and
        ``[seq, n_kv_heads * head_dim]``.
    cache : ModelCache

    Returns
    -------
    ndarray
        ``[seq, n_heads * head_dim]``.
    """
    is_prompt = cache.layers[layer].seqlens[0] == 0
    cache.append(layer, k, v)
    if not is_prompt:
        return ops.fused_attention(q, cache.layers[layer], config)
    if ops.algorithm == "materialized":
        return materialize_heads(ops, config, q, k, v)
    return ops.flash_attention_prefill(q, k, v, config, cache.window)


def materialize_heads(
    ops: Operations, config: Qwen3Config, q: np.ndarray, k: np.ndarray, v: np.ndarray
) -> np.ndarray:
    """Run causal attention head by head, the score matrix of each in full."""
    width = config.head_dim
    out = np.empty_like(q)
    for h in range(config.n_heads):
        own, shared = h * width, h // (config.n_heads // config.n_kv_heads) * width
        q_head = ops.copy_2d_from_cols(q, width, own)
        k_head = ops.copy_2d_from_cols(k, width, shared)
        v_head = ops.copy_2d_from_cols(v, width, shared)
        s = ops.matmul(q_head, ops.transpose_2d(k_head))
        s = ops.scale(s, 1 / math.sqrt(width))
        s = ops.fill_strict_upper_tri(s, -math.inf)
        p = ops.softmax_rows(s)
        ops.copy_2d_into_cols(out, ops.matmul(p, v_head), own)
    return out


def check_window(ops: Operations, seq: int, window: int | None) -> None:
    """Raise if the way of the textbooks would have to hide more than the future."""
    if ops.algorithm == "materialized" and window is not None and seq > window:
        raise Refused(
            f"algorithm has 'materialized'; expected one that can hide keys behind a "
            f"window of {window}; its mask is a triangle; use 'flash' or 'auto'"
        )
