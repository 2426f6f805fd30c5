"""Count the operations of a whole model, and say how many there must be (chapter 10).

Counts follow from layers, query heads and tokens alone. So they are traced on a
model that has those and hardly any width, which takes milliseconds.
"""

from collections import Counter
from functools import cache

import numpy as np

from flashlib.model import (
    Operations,
    Qwen3,
    Qwen3Config,
    Step,
    TracingOperations,
    generate,
    random_model,
)

__all__ = ["LONGEST", "NAMES", "PROMPT", "expected", "narrow_model", "trace", "traced"]

# The operations that differ between the two engines, and the one of decode.
NAMES = (
    "fill_strict_upper_tri",
    "transpose_2d",
    "softmax_rows",
    "matmul",
    "flash_attention_prefill",
    "fused_attention",
)
# Tokens of the published prompt, and the longest text of a narrow model here.
PROMPT, LONGEST = 17, 3


def narrow_model(layers: int, n_heads: int = 16, n_kv_heads: int = 8) -> Qwen3:
    """Return a model of so many layers and heads, all of the same memory."""
    config = Qwen3Config(
        vocab_size=64,
        hidden_size=16,
        intermediate_size=16,
        layers=layers,
        n_heads=n_heads,
        n_kv_heads=n_kv_heads,
        head_dim=4,
    )
    return random_model(config, share_layers=True)


def trace(
    model: Qwen3, algorithm: str, tokens: int, prompt: int = PROMPT
) -> TracingOperations:
    """Let a model write `tokens` tokens, and return what watched it.

    Parameters
    ----------
    model : a loaded model
    algorithm : str
        "materialized" or "flash".
    tokens : int
        To write. A text that the model ends earlier is shorter.
    prompt : int
        Tokens of the prompt; which ones does not matter.
    """
    ops = TracingOperations(Operations("numpy", algorithm))
    generate(model, np.arange(prompt), max_new_tokens=tokens, backend=ops)
    return ops


def traced(
    layers: int, n_heads: int, tokens: int, algorithm: str, prompt: int = 2
) -> dict[str, int]:
    """Return the counts of `NAMES` of a narrow model, traced.

    The prompt is short and all heads share their keys, because neither changes a
    count, and both save time.

    Parameters
    ----------
    layers, n_heads : int
    tokens : int
        To write, at most `LONGEST`.
    algorithm : str
    prompt : int

    Examples
    --------
    >>> traced(28, 16, 2, "flash")["matmul"]
    394
    """
    return _after_each_token(layers, n_heads, algorithm, prompt)[tokens - 1]


@cache
def _after_each_token(
    layers: int, n_heads: int, algorithm: str, prompt: int
) -> list[dict[str, int]]:
    """Look at the counts whenever a token is there; a text could end at each."""
    ops = TracingOperations(Operations("numpy", algorithm))
    seen: list[dict[str, int]] = []

    def look(_: Step) -> None:
        counts = ops.counts
        seen.append({name: counts[name] for name in NAMES})

    options = {"max_new_tokens": LONGEST, "backend": ops, "on_token": look}
    generate(narrow_model(layers, n_heads, 1), np.arange(prompt), **options)
    return seen


def expected(layers: int, n_heads: int, tokens: int, algorithm: str) -> Counter[str]:
    """Return the counts of `NAMES` by arithmetic.

    Parameters
    ----------
    layers, n_heads : int
        Of the model.
    tokens : int
        That are written. The last one is never run.
    algorithm : str
        "materialized" or "flash".

    Examples
    --------
    >>> expected(28, 16, 2, "materialized")["matmul"]
    1290
    """
    heads = layers * n_heads if algorithm == "materialized" else 0
    return Counter(
        fill_strict_upper_tri=heads,
        transpose_2d=heads,
        softmax_rows=tokens + heads,
        matmul=tokens * (7 * layers + 1) + 2 * heads,
        flash_attention_prefill=layers if algorithm == "flash" else 0,
        fused_attention=layers * (tokens - 1),
    )
