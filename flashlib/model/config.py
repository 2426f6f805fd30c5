"""State the sizes of a Qwen3 model, as its config.json does (chapter 10)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from flashlib.errors import ArgumentError, ShapeError, shown
from flashlib.validation import check_integer

__all__ = ["Qwen3Config"]

# Field here, key in config.json.
_SIZES = {
    "vocab_size": "vocab_size",
    "hidden_size": "hidden_size",
    "intermediate_size": "intermediate_size",
    "layers": "num_hidden_layers",
    "n_heads": "num_attention_heads",
    "n_kv_heads": "num_key_value_heads",
    "head_dim": "head_dim",
    "max_positions": "max_position_embeddings",
}
# What a config.json may say, and what the forward pass here computes.
_FIXED = {
    "hidden_act": "silu",
    "attention_bias": False,
    "use_sliding_window": False,
    "rope_scaling": None,
}
# What has to be a number > 0, and why.
_POSITIVE = {
    "rms_norm_eps": "it keeps a norm from dividing by 0",
    "rope_theta": "rotary frequencies are its powers",
}


@dataclass(frozen=True)
class Qwen3Config:
    """The sizes of a dense Qwen3 model.

    Attributes
    ----------
    vocab_size, hidden_size, intermediate_size, layers : int
    n_heads, n_kv_heads, head_dim : int
        Query heads, KV heads, and the width of a head, an even number.
        ``n_heads * head_dim`` need not be `hidden_size`.
    rms_norm_eps, rope_theta : float
    tie_word_embeddings : bool
        Whether the embedding table is also the head.
    max_positions : int
        Longest text, in tokens.
    stop_tokens : tuple of int
        Tokens that end a text.

    Examples
    --------
    >>> config = Qwen3Config.qwen3_0_6b()
    >>> config.layers * config.n_heads
    448
    """

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    layers: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    rms_norm_eps: float = 1e-6
    rope_theta: float = 1e6
    tie_word_embeddings: bool = True
    max_positions: int = 40_960
    stop_tokens: tuple[int, ...] = ()

    def __post_init__(self):
        for name in _SIZES:
            check_integer(name, getattr(self, name), 1, "a model has at least one")
        if self.n_heads % self.n_kv_heads:
            raise ShapeError(
                f"n_heads has {self.n_heads}; expected a multiple of n_kv_heads = "
                f"{self.n_kv_heads}; every KV head serves as many query heads"
            )
        if self.head_dim % 2:
            raise ShapeError(
                f"head_dim has {self.head_dim}; expected an even number; rotary "
                "positions turn pairs"
            )
        for name, why in _POSITIVE.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                value = 0
            if not 0 < value < float("inf"):
                raise ArgumentError(
                    f"{name} has {shown(getattr(self, name))}; expected a number > 0; "
                    f"{why}"
                )
        self._check_head_and_stops()

    def _check_head_and_stops(self) -> None:
        """Refuse what only acts like a bool, and stop tokens that are none."""
        if not isinstance(self.tie_word_embeddings, bool):
            raise ArgumentError(
                f"tie_word_embeddings has {shown(self.tie_word_embeddings)}; expected "
                "True or False; the head either is the embedding table or is not"
            )
        if not isinstance(self.stop_tokens, tuple):
            raise ArgumentError(
                f"stop_tokens has {shown(self.stop_tokens)}; expected a tuple of "
                "integers; every one ends a text; (2,) is one"
            )
        for token in self.stop_tokens:
            check_integer("stop_tokens", token, 0, "tokens count from 0")

    @classmethod
    def qwen3_0_6b(cls) -> "Qwen3Config":
        """Return the sizes of Qwen3-0.6B, the model of the CPU chapters.

        Source: config.json of Qwen/Qwen3-0.6B.
        """
        return cls(
            vocab_size=151_936,
            hidden_size=1024,
            intermediate_size=3072,
            layers=28,
            n_heads=16,
            n_kv_heads=8,
            head_dim=128,
        )

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> "Qwen3Config":
        """Return what the fields of a config.json say.

        Raises
        ------
        ArgumentError
            If it is not a dense Qwen3 model, if a field is missing, or if one
            asks for what the forward pass here does not compute.
        """
        if not isinstance(fields, Mapping):
            raise ArgumentError(
                f"config.json has {shown(fields)}; expected names and values; pass "
                "what json.load returns"
            )
        if fields.get("model_type") != "qwen3":
            raise ArgumentError(
                f"model_type has {shown(fields.get('model_type'))}; expected 'qwen3'; "
                "only dense Qwen3 models can be loaded"
            )
        for key, value in _FIXED.items():
            if fields.get(key, value) != value:
                raise ArgumentError(
                    f"{key} has {shown(fields[key])}; expected {value!r}; the forward "
                    "pass here computes no other"
                )
        _check_layer_types(fields.get("layer_types"))
        _check_sizes(fields)
        return cls(
            **{name: fields[key] for name, key in _SIZES.items()},
            rms_norm_eps=fields.get("rms_norm_eps", 1e-6),
            rope_theta=_rope_theta(fields),
            tie_word_embeddings=fields.get("tie_word_embeddings", False),
            stop_tokens=_stop_tokens(fields.get("eos_token_id")),
        )


def _check_layer_types(kinds: object) -> None:
    """Refuse layers of another kind than the one that is computed here."""
    if kinds is None:
        return
    if not isinstance(kinds, (list, tuple)):
        raise ArgumentError(
            f"layer_types has {shown(kinds)}; expected a list, one kind per layer; "
            "leave it out where all are 'full_attention'"
        )
    for kind in kinds:
        if kind != "full_attention":
            raise ArgumentError(
                f"layer_types has {shown(kind)}; expected 'full_attention' everywhere; "
                "the forward pass here computes no other"
            )


def _check_sizes(fields: Mapping[str, Any]) -> None:
    """Refuse a configuration without one of the sizes."""
    for key in _SIZES.values():
        if key not in fields:
            raise ArgumentError(
                f"config.json has no {key}; expected {', '.join(_SIZES.values())}; "
                "together they are the sizes of a model"
            )


def _rope_theta(fields: Mapping[str, Any]) -> float:
    """Return the base of the rotary frequencies, from its old or its new place."""
    rope = fields.get("rope_parameters")
    rope = {} if rope is None else rope
    if not isinstance(rope, Mapping):
        raise ArgumentError(
            f"rope_parameters has {shown(rope)}; expected names and values; rope_type "
            "and rope_theta stand in it; leave it out where rope_theta stands outside"
        )
    kind = rope.get("rope_type", "default")
    if kind != "default":
        raise ArgumentError(
            f"rope_type has {shown(kind)}; expected 'default'; the forward pass here "
            "computes no other"
        )
    theta = rope.get("rope_theta", fields.get("rope_theta"))
    if theta is None:
        raise ArgumentError(
            "config.json has no rope_theta; expected a number > 0; rotary frequencies "
            "are its powers"
        )
    return theta


def _stop_tokens(value: object) -> tuple[int, ...]:
    """Return the tokens that end a text: none, one, or a list."""
    if value is None:
        return ()
    tokens = value if isinstance(value, (list, tuple)) else (value,)
    why = "a token or a list of them ends a text; leave it out if none does"
    return tuple(check_integer("eos_token_id", token, 0, why) for token in tokens)
