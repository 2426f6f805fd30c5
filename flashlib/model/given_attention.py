"""Run prompts of a model over an attention that is handed in (chapters 10, 13)."""

from collections.abc import Callable

import numpy as np

from flashlib.layout import merge_heads, split_heads
from flashlib.model.config import Qwen3Config
from flashlib.model.operations import Operations
from flashlib.output import AttentionOutput

__all__ = ["GivenAttention"]


class GivenAttention(Operations):
    """NumPy throughout, but prompts run over `attention`: a wrong one, say.

    Later tokens run over the cache as usual, in one fused operation.

    Parameters
    ----------
    attention : callable
        Called like :func:`flashlib.flash_attention`.
    """

    def __init__(self, attention: Callable[..., AttentionOutput]):
        super().__init__("numpy", "flash")
        self._attention = attention

    def flash_attention_prefill(
        self,
        q: np.ndarray,
        k: np.ndarray,
        v: np.ndarray,
        config: Qwen3Config,
        window: int | None,
    ) -> np.ndarray:
        """Run causal attention over a prompt, as `Operations` does it."""
        heads = (config.n_heads, config.n_kv_heads, config.n_kv_heads)
        tensors = (split_heads(x, n) for x, n in zip((q, k, v), heads, strict=True))
        return merge_heads(self._attention(*tensors, causal=True, window=window).out)
