"""Write a text, the likeliest word first, and say how sure of it (chapters 10, 13).

Greedy decoding takes the largest logit. The margin is how far the second one
lies behind: a disturbance of the logits that is smaller than half of it cannot
change the word.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from flashlib.backends import Backend
from flashlib.errors import ArgumentError
from flashlib.model.cache import ModelCache, check_cache
from flashlib.model.operations import Operations
from flashlib.model.qwen3 import Qwen3, as_operations
from flashlib.validation import as_array, check_integer

__all__ = ["Step", "generate"]


class Step(NamedTuple):
    """One token of a text, and the one that it beat.

    Attributes
    ----------
    index : int
        Tokens generated before.
    token, runner_up : int
        Of equal logits the lower number wins.
    probability, runner_up_probability : float
    margin : float
        Difference of the two logits, which is also that of the log
        probabilities.
    """

    index: int
    token: int
    runner_up: int
    probability: float
    runner_up_probability: float
    margin: float


def generate(
    model: Qwen3,
    token_ids: np.ndarray,
    *,
    max_new_tokens: int = 20,
    backend: str | Backend | Operations = "auto",
    algorithm: str = "auto",
    cache: ModelCache | None = None,
    on_token: Callable[[Step], None] | None = None,
) -> list[int]:
    """Continue a text by the likeliest token, again and again.

    Parameters
    ----------
    model : Qwen3
    token_ids : array of int
        The text so far, ``[seq]``.
    max_new_tokens : int
        Stop after as many, or at a token that ends a text, which is not
        returned. Together with the text so far they have to fit the longest
        text of the model.
    backend, algorithm
        As in :meth:`Qwen3.prefill`.
    cache : ModelCache, optional
        Default: a contiguous one of the right size.
    on_token : callable, optional
        Called with every :class:`Step` as soon as it is known.

    Returns
    -------
    list of int
        The new tokens.

    Raises
    ------
    ArgumentError
        If the text could become longer than the model's longest, before the
        first token is written.

    Notes
    -----
    The limit holds for the longest text that may come out, because nobody knows
    beforehand whether a stop token ends it in time. transformers warns once a text
    has passed the limit, and goes on; vLLM refuses the request, as here. To write
    as far as the model goes, ask for ``model.config.max_positions - len(token_ids)``.

    Examples
    --------
    >>> from flashlib.model import load_baker
    >>> baker = load_baker()
    >>> prompt = baker.tokenizer.encode("Once upon a")
    >>> baker.tokenizer.decode(generate(baker, prompt, max_new_tokens=3))
    'time in a'
    """
    most = check_integer("max_new_tokens", max_new_tokens, 0, "tokens to write")
    ops = as_operations(backend, algorithm)
    if most == 0:
        return []
    given = as_array("token_ids", token_ids).size
    if cache is None:
        cache = model.new_cache(given + most)
    check_cache(cache)
    _check_length(model, cache.length + given, most)
    logits, _ = model.prefill(token_ids, ops, cache=cache, last_only=True)
    tokens: list[int] = []
    while True:
        step = _best(ops, len(tokens), logits)
        if step.token in model.config.stop_tokens:
            return tokens
        tokens.append(step.token)
        if on_token is not None:
            on_token(step)
        if len(tokens) == most:
            return tokens
        logits = model.decode(step.token, cache, ops)[None]


def _check_length(model: Qwen3, given: int, most: int) -> None:
    """Refuse what would end in the middle, after words have been shown."""
    longest = model.config.max_positions
    if given <= longest < given + most:
        raise ArgumentError(
            f"max_new_tokens has {most} after {given} tokens; expected at most "
            f"{longest - given}; the longest text of this model has {longest}; ask "
            "for fewer"
        )


def _best(ops: Operations, index: int, logits: np.ndarray) -> Step:
    """Return the two best tokens of one row of logits, ``[1, vocab_size]``."""
    p = ops.softmax_rows(logits)[0]
    row = logits[0]
    first = int(row.argmax())
    others = row.copy()
    others[first] = -np.inf
    second = int(others.argmax())
    margin = float(row[first]) - float(row[second])
    return Step(index, first, second, float(p[first]), float(p[second]), margin)
