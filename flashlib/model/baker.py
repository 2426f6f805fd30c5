"""Load the story model that ships with the package (chapters 10, 13).

1.2 million parameters, a few hundred words, trained by tools/train_baker.py on
stories of `flashlib.model.stories`. A checkpoint like any other, plus a list of
words and the log of its training.
"""

import json
from pathlib import Path
from typing import Any

from flashlib.model.checkpoint import load_model
from flashlib.model.qwen3 import Qwen3
from flashlib.model.words import WordTokenizer

__all__ = ["FOLDER", "load_baker", "training_log"]

FOLDER = Path(__file__).parent / "baker"


def load_baker() -> Qwen3:
    """Return the story model, with its tokenizer.

    Examples
    --------
    >>> baker = load_baker()
    >>> baker.config.n_heads, baker.config.n_kv_heads
    (4, 2)
    """
    model = load_model(FOLDER)
    model.tokenizer = WordTokenizer.read(FOLDER / "words.json")
    return model


def training_log() -> dict[str, Any]:
    """Return seed, steps, versions, loss curve and held-out loss of the training."""
    return json.loads((FOLDER / "training_log.json").read_text(encoding="utf-8"))
