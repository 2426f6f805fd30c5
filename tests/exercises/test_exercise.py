"""An exercise: what it says to right answers, wrong answers and stubs."""

import json
from decimal import Decimal

import numpy as np
import pytest

from flashlib import ArgumentError
from flashlib.exercises import ch01
from flashlib.exercises.catalogue import catalogue
from flashlib.exercises.exercise import (
    Exercise,
    Step,
    WrongStepError,
    expect,
    expect_close,
    expect_numbers,
)
from flashlib.exercises.guard import Guarded, own_copy
from flashlib.exercises.remarks import REMARKS
from flashlib.exercises.strip import Strip


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


@pytest.mark.parametrize(
    "stub", [..., None, NotImplemented, lambda x: ..., lambda x: None]
)
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


class Forgets:
    def __call__(self, x):
        self.result = 2 * x


def test_object_that_can_be_called_and_returns_nothing_is_no_stub():
    report = EXERCISE.check(Forgets())
    assert report.passed is False and "returned None" in repr(report)


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


def test_decimals_are_numbers():
    exercise = Exercise(
        number="0.3",
        title="Six and seven",
        stars=1,
        steps=(Step("two", lambda answer: expect_numbers(answer, (2,), "a count")),),
        solution=lambda: [6.0, 7.0],
        value=True,
    )
    assert exercise.check([Decimal(6), Decimal("7.0")]).passed is True
    assert exercise.check(["6", Decimal(7)]).passed is False


def test_what_is_handed_out_is_a_copy_by_place_and_by_name():
    numbers, array = {1, 2}, np.ones(2)
    assert own_copy(numbers) == numbers and own_copy(numbers) is not numbers

    def spoil(given, *, named):
        given.clear()
        named[:] = 0
        return 1

    assert Guarded(spoil)(numbers, named=array) == 1
    assert numbers == {1, 2} and array.tolist() == [1, 1]


def test_a_number_is_given_to_one_exercise_only(monkeypatch):
    monkeypatch.setattr(ch01, "EXERCISES", (EXERCISE, EXERCISE))
    with pytest.raises(ArgumentError, match="number has '0.1' twice"):
        catalogue()


def test_strip_speaks_of_the_first_read_behind_its_last_row():
    strip = Strip("k", np.ones((5, 1)), tile=2)
    assert np.isnan(strip[4:6][1]) and strip.beyond.startswith("; you read k[4:6], ")
    assert np.isnan(strip[5:7]).all() and "k[4:6]" in strip.beyond
    with pytest.raises(IndexError, match="row 5 of k, which has 5 rows"):
        strip[5]


def test_what_is_done_to_a_read_stays_out_of_the_strip():
    strip = Strip("k", np.ones((3, 1)), tile=2)
    strip[0:2][:] = 7
    assert strip[0:2].tolist() == [[1], [1]]


def test_solution_brings_what_it_imports_and_numpy_is_there():
    def solution(json):
        return np.array(json), Decimal(json)

    text = Exercise("0.4", "", 1, (), solution).show_solution()._repr_markdown_()
    assert "```python\nfrom decimal import Decimal\n\n\ndef solution" in text

    def other(text):
        return json.loads(text)

    text = Exercise("0.4", "", 1, (), other).show_solution()._repr_markdown_()
    assert "```python\nimport json\n\n\ndef other" in text


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
        (True, 0.0, "it is True; expected 0"),
        (
            np.arange(20),
            np.ones(20),
            r"it is \[0, 1, 2, \.\.\., 17, 18, 19\]; expected",
        ),
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


def test_two_numbers_show_as_many_digits_as_tell_them_apart():
    with pytest.raises(WrongStepError, match=r"it is 1\.5780000000001\d*; expected 1"):
        expect_close(1.5780000000001, 1.578, "it", atol=0.0, rtol=1e-15)
