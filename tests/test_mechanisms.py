"""The mechanisms the chapters are built on: figures, exercises, shown source, rows."""

import json
import re

import ipywidgets
import numpy as np
import pytest

from flashlib.exercises.exercise import (
    Exercise,
    Step,
    WrongStepError,
    expect,
    expect_close,
)
from flashlib.ledger import Claim, Finding, claims, find
from flashlib.ledger.table import decided_table
from flashlib.plots import svg
from flashlib.plots.museum import kill_map
from flashlib.widgets import MovingFigure, source
from flashlib.widgets.figure import scrolling


def draw(state, alt):
    return svg.picture(100, 20, [svg.rect(0, 0, state["sum"], 5)], alt, state)


def figure(axes, **options):
    return MovingFigure(
        name="test-figure",
        page="notebooks/none",
        caption="A sum & a bar.",
        axes=axes,
        state=lambda *point: {"sum": sum(point), "point": list(point)},
        picture=draw,
        words=lambda state: f"The sum of {state['point']} is {state['sum']}.",
        check=lambda state, *point: None,
        **options,
    )


ONE = {"x": (1, 2, 5)}
TWO = {"x": (1, 2, 5), "y": (10, 20)}


# ---- moving figures


def test_one_axis_stacks_a_picture_for_each_value():
    moving = figure(ONE)
    slider, stack = moving.widget().children
    assert [child.value for child in stack.children] == [
        scrolling(moving.frame(x).picture) for x in ONE["x"]
    ]
    assert slider.description == "x"
    assert [label for label, _ in slider.options] == ["1", "2", "5"]


def test_two_axes_nest_one_stack_in_the_other():
    moving = figure(TWO)
    *sliders, outer = moving.widget().children
    assert [slider.description for slider in sliders] == ["x", "y"]
    for x, inner in zip(TWO["x"], outer.children, strict=True):
        for y, child in zip(TWO["y"], inner.children, strict=True):
            assert child.value == scrolling(moving.frame(x, y).picture)


def test_start_chooses_the_first_picture():
    moving = figure(TWO, start=(2, 1))
    first, second, outer = moving.widget().children
    assert (first.index, second.index, outer.selected_index) == (2, 1, 2)
    assert [inner.selected_index for inner in outer.children] == [1, 1, 1]
    assert f"<noscript>{moving.frame(5, 20).picture}" in moving.storyboard()


def test_play_moves_the_last_axis():
    *_, player, _ = figure(TWO, play=True).widget().children
    assert isinstance(player, ipywidgets.Play)
    assert (player.min, player.max) == (0, 1)


def test_pictures_share_one_layout():
    _, stack = figure(ONE).widget().children
    assert len({child.layout.model_id for child in stack.children}) == 1


def test_a_frame_is_computed_once():
    calls = []
    moving = MovingFigure(
        name="counted",
        page="notebooks/none",
        caption="",
        axes=ONE,
        state=lambda x: calls.append(x) or {"sum": x},
        picture=draw,
        words=lambda state: "words",
        check=lambda state, x: None,
    )
    moving.widget()
    moving.storyboard()
    assert calls == [1, 2, 5]


@pytest.mark.parametrize("axes", [{}, {"x": (1,), "y": (1,), "z": (1,)}])
def test_axes_are_one_or_two(axes):
    with pytest.raises(ValueError, match="axes has . entries; expected one or two"):
        figure(axes)


def test_storyboard_says_every_state():
    text = figure(TWO).storyboard()
    items = re.findall(r"<li>(.*?)</li>", text)
    assert len(items) == 6
    assert items[0] == "x 1, y 10: The sum of [1, 10] is 11."
    assert "A sum &amp; a bar." in text


def test_picture_carries_its_state_and_its_words():
    picture = figure(ONE).frame(2).picture
    state = re.search(r'data-state="(.*?)"', picture).group(1).replace("&quot;", '"')
    assert json.loads(state) == {"point": [2], "sum": 2}
    assert 'role="img" aria-label="The sum of [2] is 2."' in picture


# ---- exercises


def test_twice(answer):
    expect_close(answer(3.0), 6.0, "twice 3")


def double(x):
    return 2 * x


EXERCISE = Exercise(
    number="0.1",
    title="Twice",
    stars=1,
    steps=(
        Step(
            "any answer",
            lambda answer: expect(np.isscalar(answer(1.0)), "no number"),
        ),
        Step("3 becomes 6", test_twice),
    ),
    solution=double,
)
test_twice.__test__ = False


def test_right_answer_passes():
    report = EXERCISE.check(EXERCISE.right_answer())
    assert report.passed is True
    assert "✓ 3 becomes 6" in repr(report) and "All steps hold" in repr(report)


def test_wrong_answer_names_the_first_wrong_step_and_its_values():
    report = EXERCISE.check(lambda x: x * x)
    assert report.passed is False
    assert repr(report).endswith("✗ 3 becomes 6\n    twice 3 is 9; expected 6")


@pytest.mark.parametrize("stub", [..., None, lambda x: ..., lambda x: None])
def test_stub_is_told_calmly(stub):
    report = EXERCISE.check(stub)
    assert report.passed is None
    assert "not filled in yet" in repr(report)


def test_stub_that_raises_not_implemented_is_a_stub():
    def stub(x):
        raise NotImplementedError

    assert EXERCISE.check(stub).passed is None


def test_raising_answer_is_wrong_and_says_what_it_raised():
    report = EXERCISE.check(lambda x: x[7])
    assert report.passed is False
    assert "your code raised TypeError" in repr(report)


def test_answer_with_other_arguments_is_wrong():
    assert EXERCISE.check(lambda: 6.0).passed is False


def test_answer_that_cannot_be_called_is_wrong():
    report = EXERCISE.check(6.0)
    assert report.passed is False
    assert "✗ any answer" in repr(report)


def test_value_exercise_checks_the_value_itself():
    exercise = Exercise(
        number="0.2",
        title="Six",
        stars=1,
        steps=(Step("it is 6", lambda answer: expect_close(answer, 6.0, "it")),),
        solution=lambda: 6.0,
        value=True,
    )
    assert exercise.check(exercise.right_answer()).passed is True
    assert exercise.check(5.0).passed is False
    assert exercise.check(...).passed is None


def test_solution_is_folded_and_shows_its_source():
    text = EXERCISE.show_solution()._repr_markdown_()
    assert text.startswith("<details><summary>Solution of exercise 0.1</summary>")
    assert "```python\ndef double(x):\n    return 2 * x\n```" in text


@pytest.mark.parametrize(
    ("got", "want", "said"),
    [
        ([1.0, 2.0], [1.0], r"it has shape \(2,\); expected \(1,\) like \[1\]"),
        ("six", 6.0, "it is 'six'; expected numbers"),
        ([np.nan], [1.0], r"it is \[nan\]; expected \[1\]"),
    ],
)
def test_expect_close_shows_both_values(got, want, said):
    with pytest.raises(WrongStepError, match=said):
        expect_close(got, want, "it")


def test_expect_close_takes_nan_and_inf_for_themselves():
    expect_close([np.nan, -np.inf, 1.0], [np.nan, -np.inf, 1.0 + 1e-9], "it")


# ---- shown source


def documented(x):
    """Say nothing."""

    return x


class Documented:
    """Say nothing."""

    field = 1


class Jitted:
    """Stand in for a dispatcher, whose Python source hangs on `py_func`."""

    py_func = staticmethod(documented)


def shown(thing, **options):
    return source(thing, **options).data


def test_source_leaves_the_docstring_out():
    assert shown(documented) == "```python\ndef documented(x):\n    return x\n```"
    assert shown(Documented) == "```python\nclass Documented:\n    field = 1\n```"


def test_source_keeps_the_docstring_on_demand():
    assert '"""Say nothing."""' in shown(documented, docstring=True)


def test_source_of_a_jitted_function_is_its_python():
    assert shown(Jitted) == shown(documented)


# ---- ledger rows


def test_find_returns_the_row():
    assert find("S0-03").chapters == (2,)
    with pytest.raises(KeyError, match="claim_id is 'S9-99'"):
        find("S9-99")


def test_a_row_knows_its_source():
    sources = {row.id[:2]: row.source for row in claims()}
    assert sources["S0"] == "CPU engine chapter"
    assert sources["S4"] == "decode kernel page"
    assert Claim("D1", "", (1,), "reproduced", "").source == "doubt"


def test_ledger_table_links_what_has_a_page_and_escapes_what_is_markdown():
    row = Claim("S0-99", "One | two.", (2, 9), "reproduced", "ch02.f")
    finding = Finding("contradicted", "a[0] is 1_000")
    *_, line = decided_table([(row, finding)], {2: "02_page.ipynb"}).splitlines()
    assert line == (
        "| **S0-99** One \\| two.<br>[chapter 2](02_page.ipynb), chapter 9 "
        "| ✗ **contradicted**<br>A\\[0] is 1\\_000. |"
    )


# ---- the map of the museum


def test_kill_map_has_a_bar_for_every_catch():
    killed = {"broken": ("published", "second"), "bent": ("first",)}
    topics = {"first": "one", "second": "two", "published": "two"}
    drawn = kill_map(killed, topics, {"broken": 4, "bent": 5}, "published")
    titles = re.findall(r"<title>(.*?)</title>", drawn)
    assert titles == [
        "published catches broken",
        "second catches broken",
        "first catches bent",
    ]
    assert re.findall(r">(ch\. \d)<", drawn) == ["ch. 4", "ch. 5"]
    label = re.search(r'aria-label="(.*?)"', drawn).group(1)
    assert label.startswith("A map of 2 mutants and 3 checks.")
    assert label.endswith("the check named published misses, 1 in all: bent.")


def test_kill_map_runs_a_line_under_what_a_mutant_is_held_to():
    killed = {"broken": ("first",), "bent": ("second",)}
    topics = {"first": "one", "second": "two"}
    held_to = {"broken": ("first",), "bent": ("second",)}
    chapters = {"broken": 4, "bent": 5}
    drawn = kill_map(killed, topics, chapters, held_to=held_to, cell=20)
    (_, end), (start, _) = (
        (float(a), float(b))
        for a, b in re.findall(r'<line x1="([\d.]+)"[^>]* x2="([\d.]+)"', drawn)[-2:]
    )
    assert end < start and "published" not in drawn
