"""An exercise: what it says to right answers, wrong answers and stubs."""

import numpy as np
import pytest

from flashlib.exercises.catalogue import catalogue
from flashlib.exercises.exercise import (
    Exercise,
    Step,
    WrongStepError,
    expect,
    expect_close,
)
from flashlib.exercises.remarks import REMARKS


def check_twice(answer):
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
        Step("3 becomes 6", check_twice),
    ),
    solution=double,
)


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


def test_what_is_asked_besides_code_is_answered_below_the_solution():
    catalogued = catalogue()
    assert set(REMARKS) <= set(catalogued)
    shown = catalogued["19.3"].show_solution()._repr_markdown_()
    assert shown.index("```\n\n" + REMARKS["19.3"]) < shown.index("</details>")
