"""Every checker is certified: it passes what is right and refuses what is not."""

import re
from fractions import Fraction
from pathlib import Path

import nbformat
import numpy as np
import pytest

from flashlib.errors import Refused
from flashlib.exercises.catalogue import catalogue
from flashlib.exercises.exercise import Exercise, expect_close
from flashlib.exercises.guard import WrongStepError, own_copy

ROOT = Path(__file__).resolve().parent.parent
EXERCISES = catalogue()
CHAPTERS = sorted({number.split(".")[0] for number in EXERCISES}, key=int)
WRONG = [(number, name) for number, x in EXERCISES.items() for name in x.wrong]
RIGHT = [(number, name) for number, x in EXERCISES.items() for name in x.right]


def page_of(chapter):
    (page,) = (ROOT / "notebooks").glob(f"{int(chapter):02d}_*.ipynb")
    return nbformat.read(page, as_version=4).cells


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_chapter_has_three_exercises(chapter):
    own = {n: x for n, x in EXERCISES.items() if n.split(".")[0] == chapter}
    assert sorted(own) == [f"{chapter}.{place}" for place in (1, 2, 3)]
    assert [own[number].stars for number in sorted(own)] == [1, 2, 3]


@pytest.mark.parametrize("number", EXERCISES)
def test_solution_passes(number):
    exercise = EXERCISES[number]
    report = exercise.check(exercise.right_answer())
    assert report.passed is True, report
    assert len(report.lines) == len(exercise.steps) + 2


def nothing(*args, **options): ...


def not_there(*args, **options):
    raise NotImplementedError


VALUE_STUBS = (..., None, [..., ...], [1, ...], (1, (2, ...)), np.array([..., 1]))
CODE_STUBS = (..., nothing, not_there, lambda *args: ..., lambda *args: (1, ...))


@pytest.mark.parametrize(("number", "name"), RIGHT)
def test_unusual_right_answer_passes(number, name):
    report = EXERCISES[number].check(EXERCISES[number].right[name])
    assert report.passed is True, report


@pytest.mark.parametrize("number", EXERCISES)
def test_stub_is_told_calmly(number):
    exercise = EXERCISES[number]
    for stub in VALUE_STUBS if exercise.value else CODE_STUBS:
        report = exercise.check(stub)
        assert report.passed is None, report
        assert "not filled in yet" in report.lines[-1]


@pytest.mark.parametrize("number", EXERCISES)
def test_answer_of_another_kind_is_refused_in_our_words(number):
    exercise = EXERCISES[number]
    others = (7, "a", nothing) if exercise.value else (7, "a", [1, 2])
    for other in others:
        report = exercise.check(other)
        assert report.passed is False, report
        assert "your code raised" not in repr(report)


@pytest.mark.parametrize("number", [n for n, x in EXERCISES.items() if x.value])
def test_numbers_may_come_as_an_array(number):
    report = EXERCISES[number].check(np.array(EXERCISES[number].right_answer()))
    assert report.passed is True, report


@pytest.mark.parametrize("number", [n for n, x in EXERCISES.items() if x.value])
def test_numbers_may_come_as_fractions(number):
    def fractions(value):
        if isinstance(value, (list, tuple)):
            return type(value)(map(fractions, value))
        return Fraction(value) if np.isfinite(value) else value

    report = EXERCISES[number].check(fractions(EXERCISES[number].right_answer()))
    assert report.passed is True, report


def spoiling(answer):
    """Answer rightly, and write over every array that came in."""

    def spoil(*args):
        result = answer(*args)
        for argument in args:
            if isinstance(argument, np.ndarray):
                argument[...] = -7
        return result

    return spoil


@pytest.mark.parametrize("number", [n for n, x in EXERCISES.items() if not x.value])
def test_answer_that_writes_over_its_arguments_spoils_no_check(number):
    exercise = EXERCISES[number]
    for _ in range(2):
        report = exercise.check(spoiling(exercise.right_answer()))
        assert report.passed is True, report


def test_blame_falls_on_whose_code_raised():
    cut = EXERCISES["21.2"]

    def divides(block_len, slots, cores):
        return slots // 0

    assert "your code raised ZeroDivisionError" in repr(cut.check(divides))
    said = repr(EXERCISES["4.3"].check(lambda n: {}))
    assert "your code raised" not in said


def says_no(*call):
    try:
        return EXERCISES["12.3"].solution(*call)
    except Refused:
        raise Refused("no") from None


@pytest.mark.parametrize(
    ("number", "answer", "said"),
    [
        ("1.3", lambda *_: np.array([2.0]), "expected 1 number, the score"),
        ("3.3", EXERCISES["3.3"].wrong["None for no r"], "expected math.nan"),
        ("4.1", [None, -2, 0, -2, 0, 0], "entry 0 is None; expected a number"),
        ("7.2", lambda _: (0.0, 8.0), "expected a pair of whole numbers"),
        ("7.2", lambda head: range(2 * head, 8), "expected a pair of whole numbers"),
        ("7.2", lambda head: slice(2 * head, 8), "expected a pair of whole numbers"),
        ("9.3", lambda *_: np.array(128), "expected a list of 2"),
        ("12.3", lambda asked, *_: (asked, "why not"), "expected 'flash'"),
        ("12.3", EXERCISES["12.3"].wrong["last resort"], "expected it to raise Ref"),
        ("12.3", says_no, "it says 'no'; expected 'it keeps all scores of a head' in"),
        ("14.3", lambda *_: np.array([66]), "expected a number: the tokens"),
        ("14.3", lambda *_: np.nan, "is nan; not whole"),
        ("17.3", lambda *_: ("moving", 8), "('ones moving', 3)"),
        ("18.1", ["0", "0", "1", "0", "0", "1"], "expected 6 times the number"),
        ("21.1", [(76, 6), (102, 4), (25, 2)], "because partition 25 has from its"),
        ("21.3", lambda *_: np.zeros((128, 1)), "whole numbers of an integer type"),
    ],
)
def test_answer_of_another_form_is_told_which(number, answer, said):
    assert said in repr(EXERCISES[number].check(answer))


def test_two_numbers_that_print_alike_get_more_digits():
    with pytest.raises(WrongStepError, match=r"it is 1.57800001; expected 1.578"):
        expect_close(1.57800001, 1.578, "it", atol=1e-12, rtol=0.0)


def test_copies_reach_into_containers_and_spare_other_objects():
    array, machine = np.arange(3.0), object()
    handed = own_copy(([array, {"a": array}], (array,), {1}, machine))
    assert handed[3] is machine
    handed[0][0][:] = handed[0][1]["a"][:] = handed[1][0][:] = 9
    assert array.tolist() == [0, 1, 2]


def test_function_without_return_is_not_taken_for_a_stub():
    def forgets(a, b):
        a[0] + b[0]

    report = EXERCISES["4.2"].check(forgets)
    assert report.passed is False and "returned None" in repr(report)


@pytest.mark.parametrize(("number", "name"), WRONG)
def test_wrong_answer_is_refused_with_its_values(number, name):
    report = EXERCISES[number].check(EXERCISES[number].wrong[name])
    assert report.passed is False, report
    said = repr(report).rpartition("✗")[2].partition("\n")[2]
    values = r"\d|nan|inf|None|True|False|'\w+'"  # a value may be a word
    assert re.search(values, said), f"no values in: {said!r}"


@pytest.mark.parametrize("number", EXERCISES)
def test_three_wrong_answers_and_distinct_steps(number):
    exercise = EXERCISES[number]
    assert len(exercise.wrong) >= 3
    claims = [step.claim for step in exercise.steps]
    assert len(set(claims)) == len(claims)


@pytest.mark.parametrize("number", EXERCISES)
def test_some_step_after_the_first_is_needed(number):
    """A checker whose first step alone refuses everything says nothing more."""
    exercise = EXERCISES[number]
    stops = {
        sum("✓" in line for line in exercise.check(wrong).lines)
        for wrong in exercise.wrong.values()
    }
    assert len(exercise.steps) == 1 or stops - {0}


def variables(chapter):
    """Return the exercises of a chapter module by the name a page calls them."""
    module = __import__(f"flashlib.exercises.ch{int(chapter):02d}", fromlist=["_"])
    return {x.number: n for n, x in vars(module).items() if isinstance(x, Exercise)}


@pytest.mark.parametrize("number", EXERCISES)
def test_shown_solution_runs_in_an_empty_notebook(number):
    """It brings what it uses: its own imports, and NumPy as every chapter has it."""
    exercise = EXERCISES[number]
    shown = exercise.show_solution()._repr_markdown_()
    code = shown.partition("```python\n")[2].partition("```")[0]
    names = {"np": np}
    exec("from __future__ import annotations\n" + code, names)
    answer = names[exercise.solution.__name__]
    assert exercise.check(answer() if exercise.value else answer).passed is True


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_page_states_checks_and_solves_every_exercise(chapter):
    cells = page_of(chapter)
    headings = [c.source for c in cells if c.cell_type == "markdown"]
    for number, name in variables(chapter).items():
        exercise = EXERCISES[number]
        heading = f"### Exercise {number} {'★' * exercise.stars} {exercise.title}"
        assert any(heading in text for text in headings), heading
        call = rf"ch{int(chapter):02d}\.{name}"
        (stub,) = (c for c in cells if re.search(rf"{call}\.check\(", c.source))
        assert "..." in stub.source and "return" not in stub.source
        (solved,) = (c for c in cells if f"{name}.show_solution()" in c.source)
        assert "remove-input" in solved.metadata.get("tags", [])
