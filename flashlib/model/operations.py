"""Compute a forward pass out of a handful of operations (chapters 10, 12).

The model says which operations run in which order; this class says how. All of
them take and return arrays of rows, ``[seq, width]``, with heads side
by side. Attention is the interesting one: `flash_attention_prefill` and
`fused_attention` hand it to a backend as one operation. The way of the
textbooks makes ten calls per head instead; the six operations that nothing
else needs are here too.
"""

import numpy as np

from flashlib.attention import flash_attention
from flashlib.backends import Backend, Choice, get_backend
from flashlib.cache.base import Cache
from flashlib.layout import merge_heads, split_heads
from flashlib.model.cache import attend_to_cache
from flashlib.model.config import Qwen3Config
from flashlib.problem import attention_problem

__all__ = ["Operations"]


class Operations:
    """NumPy for everything but attention, which a backend runs.

    Parameters
    ----------
    backend : str or Backend
        Runs attention.
    algorithm : str
        "auto" obeys the gate of the backend, "flash" insists. "materialized"
        insists as well, and then the prompt takes the way of the textbooks,
        one operation after the other.
    tile, num_splits : int, optional
        Keys per tile over a prompt, parts of a cache: other orders of the same
        sums.
    """

    def __init__(
        self,
        backend: str | Backend = "auto",
        algorithm: str = "auto",
        *,
        tile: int | None = None,
        num_splits: int | None = None,
    ):
        self.backend = get_backend(backend)
        self.algorithm = algorithm
        self.tile = tile
        self.num_splits = num_splits

    def choice(
        self, config: Qwen3Config, seq: int, window: int | None, dtype: np.dtype
    ) -> Choice:
        """Return what a prompt of `seq` tokens will run, and why.

        Raises
        ------
        ArgumentError, Refused
            If the algorithm is not known, or the backend does not run it.
        """
        widths = (config.n_heads, config.n_kv_heads, config.n_kv_heads)
        zero = dtype.type(0)
        blank = (np.broadcast_to(zero, (seq, n, config.head_dim)) for n in widths)
        problem, _ = attention_problem(*blank, causal=True, window=window)
        return self.backend.choose(problem, self.algorithm)

    def embedding(self, table: np.ndarray, token_ids: np.ndarray) -> np.ndarray:
        """Return the rows of some tokens, ``[seq, hidden_size]``."""
        return table[token_ids]

    def matmul(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return ``a @ b``."""
        return a @ b

    def add(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return ``a + b``."""
        return a + b

    def rms_norm(self, x: np.ndarray, weight: np.ndarray, eps: float) -> np.ndarray:
        """Divide by the root of the mean square along the last axis, and weigh."""
        mean_square = np.mean(x * x, axis=-1, keepdims=True)
        return weight * (x / np.sqrt(mean_square + x.dtype.type(eps)))

    def head_norm(
        self, x: np.ndarray, weight: np.ndarray, eps: float, n_heads: int
    ) -> np.ndarray:
        """Run `rms_norm` on every head by itself."""
        return merge_heads(self.rms_norm(split_heads(x, n_heads), weight, eps))

    def rope(
        self, x: np.ndarray, cos: np.ndarray, sin: np.ndarray, n_heads: int
    ) -> np.ndarray:
        """Turn every pair ``(d, d + head_dim / 2)`` by the angle of its position."""
        first, second = np.split(split_heads(x, n_heads), 2, axis=-1)
        cos, sin = cos[:, None], sin[:, None]
        turned = (first * cos - second * sin, second * cos + first * sin)
        return merge_heads(np.concatenate(turned, axis=-1))

    def swiglu(self, gate: np.ndarray, up: np.ndarray) -> np.ndarray:
        """Return ``silu(gate) * up``."""
        with np.errstate(over="ignore"):
            return gate / (1 + np.exp(-gate)) * up

    def flash_attention_prefill(
        self,
        q: np.ndarray,
        k: np.ndarray,
        v: np.ndarray,
        config: Qwen3Config,
        window: int | None,
    ) -> np.ndarray:
        """Run causal attention over a prompt in one operation of the backend.

        The name is that of the usual case. Which algorithm runs is decided by
        `algorithm` and the gate of the backend: with "auto" it may be the
        materialized one, still in a single operation.

        Parameters
        ----------
        q, k, v : ndarray
            ``[seq, n_heads * head_dim]``, ``[seq, n_kv_heads * head_dim]``.
        config : Qwen3Config
        window : int or None
            Tokens that a cache keeps, if it forgets.
        """
        heads = (config.n_heads, config.n_kv_heads, config.n_kv_heads)
        tensors = (split_heads(x, n) for x, n in zip((q, k, v), heads, strict=True))
        result = flash_attention(
            *tensors,
            causal=True,
            window=window,
            backend=self.backend,
            algorithm=self.algorithm,
            tile=self.tile,
        )
        return merge_heads(result.out)

    def fused_attention(
        self, q: np.ndarray, cache: Cache, config: Qwen3Config
    ) -> np.ndarray:
        """Run the newest tokens over the cache of a layer, in one operation."""
        rows = split_heads(q, config.n_heads)[None]
        out = attend_to_cache(rows, cache, self.backend, self.num_splits)
        return merge_heads(out[0])

    # --- the way of the textbooks ---------------------------------------------------

    def copy_2d_from_cols(self, x: np.ndarray, width: int, start: int) -> np.ndarray:
        """Copy the columns of one head, ``[seq, width]``."""
        return x[:, start : start + width].copy()

    def transpose_2d(self, x: np.ndarray) -> np.ndarray:
        """Return a transposed copy."""
        return np.ascontiguousarray(x.T)

    def scale(self, x: np.ndarray, factor: float) -> np.ndarray:
        """Multiply by a number."""
        return x * x.dtype.type(factor)

    def fill_strict_upper_tri(self, x: np.ndarray, value: float) -> np.ndarray:
        """Return a copy with `value` above the diagonal: the causal mask."""
        visible = np.tri(*x.shape, dtype=bool)  # on the diagonal and below it
        return np.where(visible, x, x.dtype.type(value))

    def softmax_rows(self, x: np.ndarray) -> np.ndarray:
        """Return the softmax of every row."""
        p = np.exp(x - x.max(axis=1, keepdims=True))
        return p / p.sum(axis=1, keepdims=True)

    def copy_2d_into_cols(self, out: np.ndarray, x: np.ndarray, start: int) -> None:
        """Write one head into its columns of `out`."""
        out[:, start : start + x.shape[1]] = x
