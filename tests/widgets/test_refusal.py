"""A page shows the words of a refusal, and fails where nothing is refused."""

import pytest

from flashlib.errors import ShapeError
from flashlib.widgets import refusal


def refuse(words, error=ShapeError):
    raise error(words)


def test_class_and_message_come_in_lines_that_fit_a_page():
    text = refusal(refuse, "q has 3 heads; expected 4; " * 5)
    assert text.startswith("ShapeError: q has 3 heads; expected 4;")
    assert 1 < len(text.splitlines()) and max(map(len, text.splitlines())) <= 78


def test_a_call_that_runs_is_no_refusal():
    with pytest.raises(AssertionError, match="expected a refusal"):
        refusal(dict, a=1)


def test_another_error_is_not_shown_as_a_refusal():
    with pytest.raises(KeyError):
        refusal(refuse, "lost", error=KeyError)
