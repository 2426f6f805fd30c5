"""Run a whole language model: embed, 28 times attend and mix, project (chapter 10).

One layer is ``x + attention(norm(x))``, then ``x + mlp(norm(x))``. Queries and
keys are normalized per head and rotated by their positions before they meet.
Source: the Qwen3 technical report (2025) and the public configuration files.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import DTypeLike

from flashlib.backends import Backend
from flashlib.errors import ArgumentError, DTypeError, ShapeError, shown
from flashlib.model.attention import attend, check_window
from flashlib.model.cache import ModelCache, check_cache
from flashlib.model.config import Qwen3Config
from flashlib.model.operations import Operations
from flashlib.model.tokenizer_file import FileTokenizer
from flashlib.model.weights import Layer, Weights, convert, draw
from flashlib.model.words import WordTokenizer
from flashlib.validation import as_array, check_integer

__all__ = ["Qwen3", "as_operations", "random_model"]

# Tokens that the cache of a prompt has room for, beyond the prompt.
SPARE = 256


class Qwen3:
    """A dense Qwen3 model, in float32 unless `astype` says otherwise.

    Parameters
    ----------
    config : Qwen3Config
    weights : Weights
    tokenizer : WordTokenizer or FileTokenizer, optional
        Turns text into numbers and back; random models come without one.
    """

    def __init__(
        self,
        config: Qwen3Config,
        weights: Weights,
        tokenizer: WordTokenizer | FileTokenizer | None = None,
    ):
        self.config = config
        self.weights = weights
        self.tokenizer = tokenizer
        half = np.arange(0, config.head_dim, 2) / config.head_dim
        self._frequencies = config.rope_theta**-half

    @property
    def dtype(self) -> np.dtype:
        """Type of the weights, and of all that is computed."""
        return self.weights.embedding.dtype

    def astype(self, dtype: DTypeLike) -> "Qwen3":
        """Return the same model in float64, to measure float32 against, or back.

        Raises
        ------
        DTypeError
            If it is another type.
        """
        try:
            kind = np.dtype(dtype)
        except TypeError:
            kind = shown(dtype)
        if kind not in (np.float32, np.float64):
            raise DTypeError(
                f"dtype has {kind}; expected float32 or float64; a forward pass is "
                "computed in one of them"
            )
        return Qwen3(self.config, convert(self.weights, kind), self.tokenizer)

    def new_cache(self, capacity: int) -> ModelCache:
        """Return an empty contiguous cache with room for `capacity` tokens."""
        return ModelCache.contiguous(self.config, capacity, self.dtype)

    def prefill(
        self,
        token_ids: np.ndarray,
        backend: str | Backend | Operations = "auto",
        *,
        algorithm: str = "auto",
        cache: ModelCache | None = None,
        last_only: bool = False,
        on_layer: Callable[[int, np.ndarray], None] | None = None,
    ) -> tuple[np.ndarray, ModelCache]:
        """Run a text, or the next part of one.

        Parameters
        ----------
        token_ids : array of int
            ``[seq]``, at least one.
        backend : str, Backend or Operations
            What runs attention, or what runs everything.
        algorithm : str
            "auto", "flash", or "materialized": the way of the textbooks. Part
            of the operations if these are given.
        cache : ModelCache, optional
            Where keys and values go. One that holds tokens already is
            continued. Default: a contiguous one with room for 256 tokens more.
        last_only : bool
            Project the last row only, which is all that generating needs.
        on_layer : callable, optional
            Called with the number of every layer and what leaves it,
            ``[seq, hidden_size]``.

        Returns
        -------
        logits : ndarray
            ``[seq, vocab_size]``, or ``[1, vocab_size]``.
        cache : ModelCache

        Raises
        ------
        ShapeError, DTypeError, ArgumentError
            If the tokens are not numbers of words, or too many.
        CapacityError
            If they do not fit the cache.
        Refused
            If the backend does not run the algorithm.
        """
        ops = as_operations(backend, algorithm)
        tokens = self._tokens(token_ids)
        if cache is None:
            cache = self.new_cache(len(tokens) + SPARE)
        check_cache(cache)
        self._check(ops, len(tokens), cache)
        x = self._run(ops, tokens, cache, on_layer)
        if last_only:
            x = x[-1:]
        x = ops.rms_norm(x, self.weights.norm, self.config.rms_norm_eps)
        return ops.matmul(x, self.weights.head), cache

    def decode(
        self,
        token_id: int,
        cache: ModelCache,
        backend: str | Backend | Operations = "auto",
    ) -> np.ndarray:
        """Run one more token, and return the logits of the next, ``[vocab_size]``.

        Raises
        ------
        ArgumentError
            If there is no such token, or the cache belongs to another model.
        CapacityError
            If the cache is full.
        """
        token_id = check_integer("token_id", token_id, 0, "tokens count from 0")
        check_cache(cache)
        if cache.length == 0:
            raise ArgumentError(
                "cache has 0 tokens; expected at least one; decode continues a text; "
                "start it with prefill"
            )
        return self.prefill([token_id], backend, cache=cache)[0][0]

    def _tokens(self, token_ids: object) -> np.ndarray:
        tokens = as_array("token_ids", token_ids)
        if tokens.ndim != 1 or tokens.size == 0:
            raise ShapeError(
                f"token_ids has shape {tokens.shape}; expected [seq] with seq >= 1; a "
                "text is one row of tokens"
            )
        if tokens.dtype.kind not in "iu":
            raise DTypeError(
                f"token_ids has dtype {tokens.dtype}; expected integers; a token is a "
                "row of the embedding table"
            )
        wrong = (tokens < 0) | (tokens >= self.config.vocab_size)
        if wrong.any():
            i = int(wrong.argmax())
            raise ArgumentError(
                f"token_ids[{i}] has {tokens[i]}; expected 0 to "
                f"{self.config.vocab_size - 1}; a token is a row of the embedding table"
            )
        return tokens.astype(np.int64)

    def _check(self, ops: Operations, n_new: int, cache: ModelCache) -> None:
        """Raise whatever is to be raised before the first layer writes its keys."""
        cache.check(self.config, n_new)
        if cache.length + n_new > self.config.max_positions:
            raise ArgumentError(
                f"token_ids has {n_new} tokens after {cache.length}; expected at most "
                f"{self.config.max_positions} in all; that is the longest text of this "
                "model"
            )
        ops.choice(self.config, n_new, cache.window, self.dtype)
        if cache.length == 0:
            check_window(ops, n_new, cache.window)

    def _run(
        self,
        ops: Operations,
        tokens: np.ndarray,
        cache: ModelCache,
        on_layer: Callable[[int, np.ndarray], None] | None,
    ) -> np.ndarray:
        """Return what leaves the last layer, ``[seq, hidden_size]``."""
        positions = np.arange(cache.length, cache.length + len(tokens))
        angles = np.outer(positions, self._frequencies)
        cos, sin = (f(angles).astype(self.dtype) for f in (np.cos, np.sin))
        x = ops.embedding(self.weights.embedding, tokens)
        for n, layer in enumerate(self.weights.layers):
            x = ops.add(x, self.attention(ops, n, layer, x, cos, sin, cache))
            x = ops.add(x, self.mlp(ops, layer, x))
            if on_layer is not None:
                on_layer(n, x)
        return x

    def attention(
        self,
        ops: Operations,
        n: int,
        layer: Layer,
        x: np.ndarray,
        cos: np.ndarray,
        sin: np.ndarray,
        cache: ModelCache,
    ) -> np.ndarray:
        """Return what the attention of layer `n` adds to `x`, ``[seq, hidden_size]``.

        Norm, projections, norms of the heads, rotation, attention over the cache, and
        the projection back. Every step is an operation of `ops`, by its name.
        """
        config, eps = self.config, self.config.rms_norm_eps
        h = ops.rms_norm(x, layer.input_norm, eps)
        q, k, v = (ops.matmul(h, w) for w in (layer.q, layer.k, layer.v))
        q = ops.head_norm(q, layer.q_norm, eps, config.n_heads)
        k = ops.head_norm(k, layer.k_norm, eps, config.n_kv_heads)
        q = ops.rope(q, cos, sin, config.n_heads)
        k = ops.rope(k, cos, sin, config.n_kv_heads)
        return ops.matmul(attend(ops, config, n, q, k, v, cache), layer.o)

    def mlp(self, ops: Operations, layer: Layer, x: np.ndarray) -> np.ndarray:
        """Return what the gated feed-forward of a layer adds to `x`."""
        h = ops.rms_norm(x, layer.post_norm, self.config.rms_norm_eps)
        mixed = ops.swiglu(ops.matmul(h, layer.gate), ops.matmul(h, layer.up))
        return ops.matmul(mixed, layer.down)


def as_operations(
    backend: str | Backend | Operations, algorithm: str = "auto"
) -> Operations:
    """Return the operations that a backend belongs to; operations as they are.

    Raises
    ------
    ArgumentError
        If the backend is not known, or an algorithm is asked of operations that
        have one already.
    """
    if not isinstance(backend, Operations):
        return Operations(backend, algorithm)
    if algorithm not in ("auto", backend.algorithm):
        raise ArgumentError(
            f"algorithm has {algorithm!r}; expected 'auto'; the operations were made "
            f"for {backend.algorithm!r}"
        )
    return backend


def random_model(
    config: Qwen3Config,
    *,
    layers: int | None = None,
    share_layers: bool = False,
    seed: int = 0,
) -> Qwen3:
    """Return a model of random weights: the right sizes, and nothing to say.

    Parameters
    ----------
    config : Qwen3Config
    layers : int, optional
        Instead of those of `config`.
    share_layers : bool
        Let all layers use the memory of one. The operations are the same, and
        the 0.6B geometry takes 0.7 GB instead of 2.4.
    seed : int

    Examples
    --------
    >>> config = Qwen3Config(64, 16, 24, layers=2, n_heads=2, n_kv_heads=1, head_dim=8)
    >>> logits, cache = random_model(config).prefill([3, 1, 4], backend="numpy")
    >>> logits.shape, cache.length
    ((3, 64), 3)
    """
    if layers is not None:
        config = replace(config, layers=layers)
    return Qwen3(config, draw(config, share_layers, seed))
