"""Name every tensor of a Qwen3 model, and draw random ones (chapter 10).

The names and shapes are those of a checkpoint, ``[out, in]``. The model wants
``[in, out]``, so that a layer is ``x @ w``; the transposed view costs nothing.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from flashlib.model.config import Qwen3Config

__all__ = [
    "EMBEDDING",
    "HEAD",
    "Layer",
    "Weights",
    "convert",
    "draw",
    "gather",
    "shapes",
]

EMBEDDING, NORM, HEAD = (
    "model.embed_tokens.weight",
    "model.norm.weight",
    "lm_head.weight",
)


class Layer(NamedTuple):
    """The tensors of one layer; matrices are ``[in, out]``."""

    input_norm: np.ndarray
    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    q_norm: np.ndarray
    k_norm: np.ndarray
    o: np.ndarray
    post_norm: np.ndarray
    gate: np.ndarray
    up: np.ndarray
    down: np.ndarray


class Weights(NamedTuple):
    """All tensors of a model.

    Attributes
    ----------
    embedding : ndarray
        ``[vocab_size, hidden_size]``.
    layers : tuple of Layer
    norm : ndarray
        ``[hidden_size]``.
    head : ndarray
        ``[hidden_size, vocab_size]``; a view of the embedding if tied.
    """

    embedding: np.ndarray
    layers: tuple[Layer, ...]
    norm: np.ndarray
    head: np.ndarray


# In the order of the fields of `Layer`.
_NAMES = (
    "input_layernorm",
    "self_attn.q_proj",
    "self_attn.k_proj",
    "self_attn.v_proj",
    "self_attn.q_norm",
    "self_attn.k_norm",
    "self_attn.o_proj",
    "post_attention_layernorm",
    "mlp.gate_proj",
    "mlp.up_proj",
    "mlp.down_proj",
)


def shapes(config: Qwen3Config) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield name and shape of every tensor that a checkpoint must hold."""
    table = (config.vocab_size, config.hidden_size)
    yield EMBEDDING, table
    for n in range(config.layers):
        yield from zip(_layer_names(n), _layer_shapes(config), strict=True)
    yield NORM, (config.hidden_size,)
    if not config.tie_word_embeddings:
        yield HEAD, table


def gather(config: Qwen3Config, read: Callable[[str], np.ndarray]) -> Weights:
    """Ask for every tensor by name, and put them in their places."""
    layers = tuple(
        Layer(*(read(name).T for name in _layer_names(n))) for n in range(config.layers)
    )
    embedding = read(EMBEDDING)
    head = embedding if config.tie_word_embeddings else read(HEAD)
    return Weights(embedding, layers, read(NORM), head.T)


def convert(weights: Weights, dtype: np.dtype) -> Weights:
    """Return all tensors in another type; what shared memory still does."""
    done: dict[int, np.ndarray] = {}

    def tensor(x: np.ndarray) -> np.ndarray:
        if id(x) not in done:
            done[id(x)] = x.astype(dtype)
        return done[id(x)]

    embedding = tensor(weights.embedding)
    tied = np.shares_memory(weights.head, weights.embedding)
    head = embedding.T if tied else tensor(weights.head)
    layers = tuple(Layer(*map(tensor, layer)) for layer in weights.layers)
    return Weights(embedding, layers, tensor(weights.norm), head)


def draw(config: Qwen3Config, share_layers: bool, seed: int) -> Weights:
    """Return random weights that keep the size of what flows through them.

    Parameters
    ----------
    config : Qwen3Config
    share_layers : bool
        Let every layer be the first one, the same memory.
    seed : int
    """
    random = np.random.default_rng(seed)

    def tensor(shape: tuple[int, ...]) -> np.ndarray:
        if len(shape) == 1:
            return np.ones(shape, np.float32)
        values = random.standard_normal(shape, np.float32)
        values *= np.float32(shape[1] ** -0.5)
        return values

    table = (config.vocab_size, config.hidden_size)
    embedding = tensor(table)
    drawn = 1 if share_layers else config.layers
    layers = [
        Layer(*(tensor(shape).T for shape in _layer_shapes(config)))
        for _ in range(drawn)
    ]
    layers *= config.layers // drawn
    head = embedding if config.tie_word_embeddings else tensor(table)
    return Weights(embedding, tuple(layers), tensor((config.hidden_size,)), head.T)


def _layer_names(n: int) -> list[str]:
    return [f"model.layers.{n}.{name}.weight" for name in _NAMES]


def _layer_shapes(config: Qwen3Config) -> tuple[tuple[int, ...], ...]:
    hidden, wide = config.hidden_size, config.intermediate_size
    q_width = config.n_heads * config.head_dim
    kv_width = config.n_kv_heads * config.head_dim
    return (
        (hidden,),
        (q_width, hidden),
        (kv_width, hidden),
        (kv_width, hidden),
        (config.head_dim,),
        (config.head_dim,),
        (hidden, q_width),
        (hidden,),
        (wide, hidden),
        (wide, hidden),
        (hidden, wide),
    )
