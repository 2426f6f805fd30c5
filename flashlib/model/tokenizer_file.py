"""Read the tokenizer of a published checkpoint, if one is asked for text (chapter 13).

Byte pairs and their merges are a subject of their own, and the package
`tokenizers` knows it. Nothing else here needs it: a model runs on numbers.
"""

from collections.abc import Iterable
from functools import cached_property
from os import PathLike
from pathlib import Path

import numpy as np

from flashlib.errors import ArgumentError
from flashlib.model.words import check_text, check_tokens

__all__ = ["FileTokenizer"]


class FileTokenizer:
    """The tokenizer.json of a checkpoint, read when it is first used.

    Parameters
    ----------
    path : str or path
    """

    def __init__(self, path: str | PathLike):
        self.path = Path(path)

    @cached_property
    def _inner(self):
        try:
            from tokenizers import Tokenizer
        except ImportError:
            raise ArgumentError(
                f"path has {self.path.name}; expected the package tokenizers to read "
                "it; install tokenizers, or pass numbers"
            ) from None
        try:
            return Tokenizer.from_file(str(self.path))
        except Exception as error:  # the reader raises nothing more precise
            raise ArgumentError(
                f"{self.path.name} has no tokenizer; expected one that the package "
                f"tokenizers reads; {error}"
            ) from None

    def __len__(self) -> int:
        return self._inner.get_vocab_size()

    def encode(self, text: str) -> np.ndarray:
        """Return the numbers of a text, ``[seq]``."""
        check_text(text)
        return np.array(self._inner.encode(text).ids, np.int64)

    def decode(self, token_ids: Iterable[int]) -> str:
        """Return the text of some numbers, without the special ones."""
        return self._inner.decode(check_tokens(token_ids))
