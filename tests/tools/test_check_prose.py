"""The lint finds typed numbers and slips, and leaves honest sentences alone."""

import json

import check_prose
import pytest
from prose import prose_of


def notebook(*cells):
    return {"cells": list(cells), "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


def markdown(text):
    return {"cell_type": "markdown", "source": text, "metadata": {}}


def glue(name, text, prefix="application/papermill.record/"):
    """Return a cell as `glue(..., display=False)` leaves it, or without a prefix."""
    output = {
        "output_type": "display_data",
        "data": {f"{prefix}text/plain": text},
        "metadata": {"scrapbook": {"name": name, "mime_prefix": prefix}},
    }
    return {"cell_type": "code", "source": "", "metadata": {}, "outputs": [output]}


def faults(tmp_path, text, **glued):
    """Check one sentence in a notebook that glued the given values."""
    source, executed = tmp_path / "source.ipynb", tmp_path / "executed.ipynb"
    source.write_text(json.dumps(notebook(markdown(text))))
    cells = [glue(name, value) for name, value in glued.items()]
    executed.write_text(json.dumps(notebook(*cells)))
    return list(check_prose.faults_of_notebook(source, executed))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("The matrix has 261121 entries.", "261121"),
        ("The matrix has 261,121 entries.", "261121"),
        ("The matrix has 261,121 entries.", "'261,121'"),
        ("In all $4 n^2 = 1{,}044{,}484$ bytes.", "1044484"),
        ("That is 467.9 MB.", "467.928832"),
        ("That is 467.9 MB.", "467928832"),
        ("That is 467.9 MB.", "np.int64(467928832)"),
        ("That is 468 MB.", "467928832"),
        ("On average 467.9 keys.", "467.928832"),
        ("Traffic is 2.8 GB.", "'2.8 GB'"),
        ("The error is 1.19e-07.", "1.19e-07"),
        ("```{note}\nIt has 1290 steps.\n```", "1290"),
        (":::{tip}\nIt has 1290 steps.\n:::", "1290"),
    ],
)
def test_typed_number_is_found(tmp_path, text, value):
    found = faults(tmp_path, text, count=value)
    assert len(found) == 1
    assert "source.ipynb cell 0" in found[0]
    assert "'count'" in found[0]


@pytest.mark.parametrize(
    "text",
    [
        "The matrix has {glue:text}`count` entries.",
        "Six keys in 3 tiles of 2.",
        "Use `n = 261121` here.",
        "```python\nn = 261121\n```",
        "See [this](https://example.org/261121).",
        "The book by N. N., 1999.",
        "About 261,122 entries.",
        "A tile, not a matrix of 261121. <!-- typed: 261121 -->",
    ],
)
def test_other_sentences_pass(tmp_path, text):
    assert faults(tmp_path, text, count="261121") == []


@pytest.mark.parametrize(
    "text",
    [
        "A tile of 512. <!-- typed: 512 -->",
        "A tile, not a matrix of 261121. <!-- typed: 261121 512 -->",
    ],
)
def test_excuse_that_excuses_nothing_is_found(tmp_path, text):
    found = faults(tmp_path, text, count="261121")
    assert len(found) == 1 and "'typed: 512' excuses nothing" in found[0]


def test_value_is_found_whether_it_is_shown_or_not():
    cells = glue("hidden", "'511'"), glue("shown", "'512'", prefix="")
    assert check_prose.glued_in(notebook(*cells)) == {"hidden": [511], "shown": [512]}


def test_a_whole_number_without_a_unit_is_not_a_rounded_one(tmp_path):
    assert faults(tmp_path, "About 468 keys.", count="467.928832") == []
    assert faults(tmp_path, "About 468 keys.", count="467928832") == []
    assert len(faults(tmp_path, "About 468 keys.", count="468")) == 1


def test_rounding_needs_three_digits(tmp_path):
    assert faults(tmp_path, "Every 2.8 seconds.", time="2.7961") == []
    assert len(faults(tmp_path, "Every 2.80 seconds.", time="2.7961")) == 1


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("It works!", "exclamation mark"),
        ("Choose a colour.", "British spelling"),
        ("This is a TO" r"DO.", "unfinished"),
        ("An amazing trick.", "hype"),
    ],
)
def test_slip_of_style_is_found(text, rule):
    assert [f.partition(":")[0] for f in check_prose.faults_of_style(text)] == [rule]


@pytest.mark.parametrize(
    "text",
    [
        "![A picture](picture.png)",
        "The number 5! is 120, and $n!$ grows.",
        "`!=` and `colour` stand in code.",
        "Four hours of your tour.",
    ],
)
def test_honest_prose_has_no_slip(text):
    assert list(check_prose.faults_of_style(text)) == []


def test_prose_keeps_notes_and_drops_code():
    text = "A\n\n````{note}\nB\n```python\nC\n```\nD\n````\n\n```{math}\nE\n```\nF"
    assert prose_of(text).split() == ["A", "B", "D", "F"]


def test_a_fence_closes_with_as_many_marks_as_it_opened_or_more():
    assert prose_of("```python\nA\n````\nB").split() == ["B"]
    assert prose_of("````python\nA\n```\nB\n````\nC").split() == ["C"]
