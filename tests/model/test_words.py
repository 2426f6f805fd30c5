"""Words to numbers and back, and the grammar behind the story model."""

import random
from collections import Counter

import numpy as np
import pytest

import flashlib
from flashlib.model import stories
from flashlib.model.words import START, WordTokenizer, split_words

WORDS = [START, ".", ",", "“", "”", "Mr", "Baker", "said", "bread"]
TOKENIZER = WordTokenizer(WORDS)


def told(n, seed=0):
    dice = random.Random(seed)
    return [stories.story(dice) for _ in range(n)]


def test_text_survives_the_round_trip():
    text = "“bread,” said Mr. Baker."
    ids = TOKENIZER.encode(text)
    assert ids[0] == TOKENIZER.start == 0 and ids.dtype.kind == "i"
    assert TOKENIZER.decode(ids) == text
    assert np.array_equal(TOKENIZER.encode(f"  {text}\n"), ids)


def test_every_story_survives_it():
    texts = told(50)
    known = sorted({word for text in texts for word in split_words(text)})
    tokenizer = WordTokenizer([START, *known])
    assert all(tokenizer.decode(tokenizer.encode(text)) == text for text in texts)
    assert len(tokenizer) == len(known) + 1


@pytest.mark.parametrize(
    ("text", "word"), [("Mr. Smith", "Smith"), ("bread!", "!"), ("7", "7")]
)
def test_an_unknown_word_is_named(text, word):
    with pytest.raises(flashlib.ArgumentError, match=f"text has '{word}'"):
        TOKENIZER.encode(text)


@pytest.mark.parametrize("words", [[], ["a"], [START, "a", "a"], ["a", START]])
def test_a_list_that_is_no_vocabulary(words):
    with pytest.raises(flashlib.ArgumentError, match="every word once"):
        WordTokenizer(words)


def test_the_same_seed_tells_the_same_story():
    assert told(3, seed=8) == told(3, seed=8) != told(3, seed=9)


def test_an_opening_is_seventeen_tokens():
    assert {len(split_words(text)) + 1 for text in stories.openings()} == {17}
    assert all(text.startswith(tuple(stories.openings())) for text in told(20))


def test_surnames_are_equally_likely():
    # 4,000 draws of 16: 250 each, give or take five standard deviations of 15.
    names = Counter(text.split(" named M")[1].split()[1][:-1] for text in told(4000))
    assert sorted(names) == sorted(stories.SURNAMES) and len(names) == 16
    assert all(abs(count - 250) < 77 for count in names.values())


def test_later_sentences_agree_with_earlier_ones():
    for text in told(200):
        first, rest = text.split(".", 2)[0], text
        where = first.split(" in a ")[1].split(", there")[0]
        assert rest.endswith(f"in the {where}. The end.")
        he = "he" if "named Mr." in text else "she"
        assert f" {he} " in text
        assert (" she " in text) != (" he " in text)
        assert " a a" not in text and " a o" not in text and " a e" not in text
