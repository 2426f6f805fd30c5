"""Compute one text in two ways, and hold what moves against the margins (chapter 13).

A greedy text need not be written twice to be compared. A pass over it returns the
logits behind each of its words, and the text parts at the first word that is no
longer the best.
"""

from functools import cache
from random import Random
from typing import NamedTuple

import numpy as np

from flashlib.backends import available_backends
from flashlib.model import Operations, Qwen3, RoundedOperations, generate, load_baker
from flashlib.model.stories import openings

__all__ = [
    "CHANGES",
    "PROMPT",
    "Disturbance",
    "disturb",
    "disturbances",
    "logits",
    "margins",
    "prompts",
    "story_model",
    "told",
]

# Tokens of an opening, the start of a text among them.
PROMPT = 17
LONGEST = 220

# What is changed: the two ways that are compared.
CHANGES = {
    "float64 to float32": ("exact", "matrix"),
    "matrix to flash": ("matrix", "flash"),
    "tiles of 64 to 5": ("flash", "tiles"),
    "float32 to bfloat16": ("flash", "bfloat16 flash"),
    "tiles of 64 to 5, bfloat16": ("bfloat16 flash", "bfloat16 tiles"),
    "matrix to flash, bfloat16": ("bfloat16 matrix", "bfloat16 flash"),
    "float32 to int8": ("flash", "int8 flash"),
    "tiles of 64 to 5, int8": ("int8 flash", "int8 tiles"),
    "matrix to flash, int8": ("int8 matrix", "int8 flash"),
}


class Disturbance(NamedTuple):
    """What one change does to every step of some texts.

    Attributes
    ----------
    margins : ndarray
        Logit of the best word less that of the second, before, ``[steps]``.
    shifts : ndarray
        How far the rival that moved most has moved against the best word.
    changed : ndarray of bool
        Where another word is the best afterwards.
    """

    margins: np.ndarray
    shifts: np.ndarray
    changed: np.ndarray


def margins(logits: np.ndarray) -> np.ndarray:
    """Return the best logit less the second of every row.

    Examples
    --------
    >>> margins(np.array([[1.0, 4.0, 2.5]]))
    array([1.5])
    """
    best = np.partition(logits, -2, axis=-1)
    return best[..., -1] - best[..., -2]


def disturb(before: np.ndarray, after: np.ndarray) -> Disturbance:
    """Compare the logits of the same steps, ``[steps, vocab_size]``.

    What all logits have in common is not counted: no probability sees it.

    Examples
    --------
    >>> disturb(np.array([[4.0, 2.5]]), np.array([[7.0, 6.0]]))[1:]
    (array([0.5]), array([False]))
    """
    best = before.argmax(axis=1)[:, None]
    was, now = (x - np.take_along_axis(x, best, axis=1) for x in (before, after))
    shifts = np.abs(now - was).max(axis=1)
    return Disturbance(margins(before), shifts, after.argmax(axis=1) != best[:, 0])


def _operations(way: str) -> Operations:
    *rounding, engine = way.split()
    algorithm = "materialized" if engine in ("exact", "matrix") else "flash"
    tile = 5 if engine == "tiles" else None
    if rounding:
        return RoundedOperations(*rounding, "numpy", algorithm, tile=tile)
    return Operations("numpy", algorithm, tile=tile)


@cache
def story_model(dtype: str = "float32") -> Qwen3:
    """Return the story model, loaded once."""
    return load_baker().astype(dtype)


def prompts(count: int) -> list[str]:
    """Return some openings of stories, always the same ones."""
    every = list(openings())
    return Random(3).sample(every, len(every))[:count]


@cache
def told(prompt: str) -> np.ndarray:
    """Return an opening and the greedy text behind it, as tokens, ``[seq]``."""
    model = story_model()
    tokens = model.tokenizer.encode(prompt)
    # One core: a pool has too little to do in a model of this size.
    backend = "simd" if "simd" in available_backends() else "numpy"
    new = generate(model, tokens, max_new_tokens=LONGEST, backend=backend)
    return np.concatenate([tokens, np.array(new, tokens.dtype)])


@cache
def logits(prompt: str, way: str) -> np.ndarray:
    """Return the logits behind every new word of a text, computed in one way.

    Returns
    -------
    ndarray
        ``[steps, vocab_size]``; the last step ends the text.
    """
    model = story_model("float64" if way == "exact" else "float32")
    return model.prefill(told(prompt), _operations(way))[0][PROMPT - 1 :]


def disturbances(change: str, texts: list[str]) -> list[Disturbance]:
    """Return what one of `CHANGES` does to every text."""
    before, after = CHANGES[change]
    return [disturb(logits(x, before), logits(x, after)) for x in texts]
