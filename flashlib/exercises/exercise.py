"""What an exercise is, and how an answer is checked step by step (book)."""

import ast
import inspect
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import partial

import numpy as np

from flashlib.exercises.guard import Guarded, UnfilledError, WrongStepError, is_stub
from flashlib.exercises.remarks import REMARKS


@dataclass(frozen=True)
class Step:
    """One thing that a right answer does.

    Parameters
    ----------
    claim : str
        What holds when the step passes, as printed after the check mark.
    test : callable
        ``test(answer)`` raises `WrongStepError` with the values that show the fault.
    """

    claim: str
    test: Callable[[object], None]


@dataclass(frozen=True)
class Report:
    """What a checker found; its text is what a cell shows.

    Parameters
    ----------
    passed : bool or None
        None while the answer is still the stub.
    lines : sequence of str
        The report, first step first; it ends at the first wrong step.
    """

    passed: bool | None
    lines: Sequence[str]

    def __repr__(self) -> str:
        return "\n".join(self.lines)


@dataclass(frozen=True)
class Exercise:
    """One exercise: its steps, its one solution, and answers known to be wrong.

    Parameters
    ----------
    number : str
        Chapter and place, such as ``"4.2"``.
    title : str
        As in the chapter.
    stars : int
        1 reads off, 2 writes, 3 thinks.
    steps : sequence of Step
        In the order in which a reader should mend them.
    solution : callable
        The one solution; its source is shown on the page and run by the tests. For a
        `value` exercise it takes no arguments and returns the right answer.
    wrong : mapping of str to object
        Answers that the checker must refuse, by the name of their fault.
    value : bool
        The answer is a value (a number, a list), not a function.
    right : mapping of str to object
        Unusual answers that the checker must accept, by what is unusual.
    """

    number: str
    title: str
    stars: int
    steps: Sequence[Step]
    solution: Callable
    wrong: Mapping[str, object] = field(default_factory=dict)
    value: bool = False
    right: Mapping[str, object] = field(default_factory=dict)

    def check(self, answer: object) -> Report:
        """Check an answer and say what is right and what is the first wrong step."""
        lines = [f"Exercise {self.number}, {self.title}"]
        for step in self.steps:
            given = None
            try:
                given = self._given(answer)
                step.test(given)
            except UnfilledError:
                lines.append("  · not filled in yet: replace the ... and run again")
                return Report(None, lines)
            except WrongStepError as wrong:
                lines += [f"  ✗ {step.claim}", *_indent(str(wrong))]
                return Report(False, lines)
            except Exception as error:
                lines += [f"  ✗ {step.claim}", *_indent(_blame(error, given))]
                return Report(False, lines)
            lines.append(f"  ✓ {step.claim}")
        return Report(True, [*lines, "  All steps hold."])

    def _given(self, answer: object) -> object:
        """Return what a step gets: numbers as a list, a function under guard."""
        if is_stub(answer):
            raise UnfilledError
        if self.value:
            listed = answer.tolist() if isinstance(answer, np.ndarray) else answer
            given = _in_floats(listed)
            right = self.solution()
            if isinstance(right, (list, tuple)):
                said = f"the answer is {answer!r}; expected a list of {len(right)}"
                expect(isinstance(given, (list, tuple)), said)
            return given
        expect(callable(answer), f"the answer is {answer!r}; expected a function")
        return Guarded(answer)

    def right_answer(self) -> object:
        """Return what a right reader hands to `check`."""
        return self.solution() if self.value else self.solution

    def show_solution(self) -> "Solution":
        """Return the solution as a fold-out for the page."""
        return Solution(self)


@dataclass(frozen=True)
class Solution:
    """A solution that stays folded until the reader opens it."""

    exercise: Exercise

    def _repr_markdown_(self) -> str:
        solution = self.exercise.solution
        code = textwrap.dedent(inspect.getsource(solution)).rstrip()
        head = "".join(f"{line}\n" for line in _imports(solution, code))
        code = f"{head}\n\n{code}" if head else code
        remark = REMARKS.get(self.exercise.number, "")
        remark += "\n\n" if remark else ""
        return (
            f"<details><summary>Solution of exercise {self.exercise.number}"
            f"</summary>\n\n```python\n{code}\n```\n\n{remark}</details>"
        )

    def __repr__(self) -> str:
        return f"solution of exercise {self.exercise.number}"


def _in_floats(value: object) -> object:
    """Return an answer with fractions and decimals as floats, at any level."""
    if isinstance(value, (Fraction, Decimal)):
        return float(value)
    if type(value) in (list, tuple):
        return type(value)(map(_in_floats, value))
    return value


def _imports(function: Callable, code: str) -> list[str]:
    """Return import lines for what the body of a function takes from its module."""
    (whole,) = ast.parse(code).body
    nodes = (node for part in whole.body for node in ast.walk(part))
    used = {node.id for node in nodes if isinstance(node, ast.Name)}
    names = sorted(used - set(function.__code__.co_varnames))
    outside = {name: vars(inspect.getmodule(function)).get(name) for name in names}
    lines = []
    for name, value in outside.items():
        if inspect.ismodule(value) and value is not np:
            lines.append(f"import {value.__name__}")
        elif inspect.isfunction(value) or inspect.isclass(value):
            lines.append(f"from {value.__module__} import {name}")
    return lines


def expect(holds: bool, message: str) -> None:
    """Raise `WrongStepError` with a message unless a condition holds."""
    if not holds:
        raise WrongStepError(message)


def expect_numbers(answer: object, shape: tuple[int, ...], what: str) -> None:
    """Raise `WrongStepError` unless an answer is a list of real numbers.

    Parameters
    ----------
    answer : object
        A list or a tuple, of lists or tuples where `shape` has two entries.
    shape : tuple of int
        How many entries there are at each level.
    what : str
        What one entry is, such as ``"a weight per key"``.
    """
    listed = isinstance(answer, (list, tuple)) or (
        isinstance(answer, np.ndarray) and answer.ndim > 0
    )
    size = len(answer) if listed else 0
    expect(
        size == shape[0],
        f"the answer is {answer!r}; expected a list of {shape[0]}: {what}",
    )
    for place, entry in enumerate(answer):
        if shape[1:]:
            expect_numbers(entry, shape[1:], what)
        else:
            real = np.asarray(entry).dtype.kind in "fiu" and np.ndim(entry) == 0
            expect(real, f"entry {place} is {entry!r}; expected a number: {what}")


def expect_close(
    got: object, want: object, what: str, atol: float = 1e-6, rtol: float = 1e-6
) -> None:
    """Raise `WrongStepError` that shows both values unless they agree.

    NaN equals NaN and infinities equal themselves.
    """
    try:
        seen = np.asarray(got, dtype=np.float64)
    except (TypeError, ValueError):
        raise WrongStepError(f"{what} is {got!r}; expected numbers") from None
    right = np.asarray(want, dtype=np.float64)
    if seen.shape != right.shape:
        raise WrongStepError(
            f"{what} has shape {seen.shape}; expected {right.shape} like {_short(want)}"
        )
    if not np.allclose(seen, right, atol=atol, rtol=rtol, equal_nan=True):
        for digits in (6, 9, 17):  # as few as show that the two differ
            said, wanted = _short(got, digits), _short(want, digits)
            if said != wanted:
                break
        raise WrongStepError(f"{what} is {said}; expected {wanted}")


def _blame(error: Exception, given: object) -> str:
    """Say who raised an error: the reader's function, or the check of its result."""
    said = f"{type(error).__name__}: {error}"
    if isinstance(given, Guarded) and given.raised is error:
        return f"your code raised {said}"
    return f"the answer is of a kind that cannot be checked ({said})"


def _indent(message: str) -> list[str]:
    return [f"    {line}" for line in message.splitlines()]


def _short(value: object, digits: int = 6) -> str:
    """Write a value for a reader: few digits, no dtype noise."""
    array = np.asarray(value)
    if array.dtype.kind not in "fiub":
        return str(value)
    if array.ndim == 0:
        return _digits(array.item(), digits)
    entry = partial(_digits, digits=digits)
    return np.array2string(
        array, threshold=12, separator=", ", formatter={"all": entry}
    )


def _digits(number: float, digits: int) -> str:
    """Write whole numbers in full and others with some digits."""
    if isinstance(number, (bool, np.bool_)):
        return str(number)
    whole = abs(number) < 1e15 and number == round(number)
    return f"{number:.0f}" if whole else f"{number:.{digits}g}"
