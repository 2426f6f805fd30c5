"""Turn words into numbers and back, one number for every word (chapter 13).

A tokenizer for a model that knows a few hundred words: a comma, a period and a
quotation mark count as words, and writing them back decides about the spaces.
"""

import json
import re
from collections.abc import Iterable
from os import PathLike
from pathlib import Path

import numpy as np

from flashlib.errors import ArgumentError, shown
from flashlib.validation import check_integer

__all__ = ["START", "WordTokenizer", "check_text", "check_tokens", "split_words"]

START = "<s>"
_WORD = re.compile(r"[A-Za-z]+|[.,“”]")
_NO_SPACE_BEFORE, _NO_SPACE_AFTER = set(".,”"), set("“")


def check_text(text: object) -> None:
    """Raise ArgumentError unless it is a text."""
    if not isinstance(text, str):
        raise ArgumentError(
            f"text has {shown(text)}; expected a str; words are read from letters"
        )


def check_tokens(token_ids: object) -> list[int]:
    """Return the numbers of words as a list, or raise ArgumentError."""
    if not isinstance(token_ids, Iterable) or np.ndim(token_ids) > 1:
        raise ArgumentError(
            f"token_ids has {shown(token_ids)}; expected the numbers of words; a text "
            "is one row of them"
        )
    return [
        check_integer("token_ids", token, 0, "tokens count from 0")
        for token in token_ids
    ]


def split_words(text: str) -> list[str]:
    """Split a text into words and punctuation marks.

    Raises
    ------
    ArgumentError
        If something in the text is neither.

    Examples
    --------
    >>> split_words("named Mr. Baker.")
    ['named', 'Mr', '.', 'Baker', '.']
    """
    check_text(text)
    rest = _WORD.sub("", text).split()
    if rest:
        raise ArgumentError(
            f"text has {rest[0]!r}; expected letters, spaces and the marks . , “ ”; "
            "nothing else is a word or a mark here"
        )
    return _WORD.findall(text)


class WordTokenizer:
    """A list of words; the number of a word is its place in the list.

    Parameters
    ----------
    words : iterable of str
        All words, once each. The first is `START`, which opens every text and
        therefore also ends the one before.

    Examples
    --------
    >>> tokenizer = WordTokenizer(["<s>", ".", "Mr", "Baker"])
    >>> tokenizer.encode("Mr. Baker.")
    array([0, 2, 1, 3, 1])
    >>> tokenizer.decode([2, 1, 3, 1])
    'Mr. Baker.'
    """

    def __init__(self, words: Iterable[str]):
        self.words = tuple(words)
        self._ids = {word: i for i, word in enumerate(self.words)}
        if len(self._ids) != len(self.words) or self.words[:1] != (START,):
            raise ArgumentError(
                f"words has {len(self.words)} entries, {len(self._ids)} of them "
                f"different; expected every word once, {START!r} first; the number of "
                "a word is its place"
            )

    @classmethod
    def read(cls, path: str | PathLike) -> "WordTokenizer":
        """Read the words from a JSON file, a list of them."""
        return cls(json.loads(Path(path).read_text(encoding="utf-8")))

    @property
    def start(self) -> int:
        """Number of the word that opens a text and ends the one before."""
        return 0

    def __len__(self) -> int:
        return len(self.words)

    def id(self, word: str) -> int:
        """Return the number of one word.

        Raises
        ------
        ArgumentError
            If the word is not in the list.
        """
        if word not in self._ids:
            raise ArgumentError(
                f"text has {word!r}; expected one of the {len(self)} words that the "
                "model was trained on; see tokenizer.words"
            )
        return self._ids[word]

    def encode(self, text: str) -> np.ndarray:
        """Return the numbers of a text, `START` first, ``[seq]``."""
        return np.array([self.start, *map(self.id, split_words(text))])

    def decode(self, token_ids: Iterable[int]) -> str:
        """Return the text of some numbers; `START` is not written.

        Raises
        ------
        ArgumentError
            If one is the number of no word.
        """
        text, glue = "", True
        for token in check_tokens(token_ids):
            if token >= len(self):
                raise ArgumentError(
                    f"token_ids has {token}; expected 0 to {len(self) - 1}; every "
                    "token is the number of a word"
                )
            word = self.words[token]
            if word == START:
                continue
            text += word if glue or word in _NO_SPACE_BEFORE else f" {word}"
            glue = word in _NO_SPACE_AFTER
        return text
