"""Every checker is certified: it passes what is right and refuses what is not."""

import re
from pathlib import Path

import nbformat
import pytest

from flashlib.exercises.catalogue import catalogue
from flashlib.exercises.exercise import Exercise

ROOT = Path(__file__).resolve().parent.parent
EXERCISES = catalogue()
CHAPTERS = sorted({number.split(".")[0] for number in EXERCISES}, key=int)
WRONG = [(number, name) for number, x in EXERCISES.items() for name in x.wrong]


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


@pytest.mark.parametrize("number", EXERCISES)
def test_stub_is_told_calmly(number):
    exercise = EXERCISES[number]
    stub = ... if exercise.value else (lambda *args, **options: ...)
    report = exercise.check(stub)
    assert report.passed is None, report
    assert "not filled in yet" in report.lines[-1]


@pytest.mark.parametrize(("number", "name"), WRONG)
def test_wrong_answer_is_refused_with_its_values(number, name):
    report = EXERCISES[number].check(EXERCISES[number].wrong[name])
    assert report.passed is False, report
    said = repr(report).rpartition("✗")[2].partition("\n")[2]
    assert re.search(r"\d|nan|inf|None|True|False", said), f"no values in: {said!r}"


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
