"""Exercises on two terms of a time, and on whose gain it is (chapter 11)."""

import math
from collections.abc import Callable

import numpy as np

from flashlib.exercises.exercise import (
    Exercise,
    Step,
    expect,
    expect_close,
    expect_numbers,
)
from flashlib.experiments.published import RUNS

# ---- 11.1 ----------------------------------------------------------------------------


def _three(answer: object) -> None:
    expect_numbers(answer, (3,), "a share between 0 and 1")


def _share(answer: object) -> None:
    expect_close(answer[0], 0.5, "the square share before, at 500 tokens", 0.005)


def _saved(answer: object) -> None:
    expect_close(answer[1], 0.3, "the part saved at 500 tokens", 0.005)


def _limit(answer: object) -> None:
    expect_close(answer[2], 0.6, "the part saved in the limit", 0.005)


def three_shares() -> list[float]:
    """Divide square by whole, saved by whole, and compare the square terms."""
    n, a, before, after = 500, 2.0, 0.004, 0.0016
    whole = a * n + before * n * n
    square = before * n * n / whole
    return [square, (before - after) * n * n / whole, 1 - after / before]


read_off = Exercise(
    number="11.1",
    title="Read off the roof",
    stars=1,
    steps=(
        Step("three numbers", _three),
        Step("the share of the square term", _share),
        Step("what is saved now", _saved),
        Step("what can be saved at most", _limit),
    ),
    solution=three_shares,
    wrong={
        "per token": [0.004 / 2.004, 0.0024 / 2.004, 0.6],
        "saved of the square": [0.5, 0.6, 0.6],
        "limit of everything": [0.5, 0.3, 1.0],
        "what is left": [0.5, 0.7, 0.4],
        "in percent": [50, 30, 60],
    },
    value=True,
    right={"an array": np.array([0.5, 0.3, 0.6])},
)

# ---- 11.2 ----------------------------------------------------------------------------


def _close(got: object, want: tuple[float, float], what: str) -> None:
    expect(np.shape(got) == (2,), f"{what}: the answer is {got!r}; expected (a, b)")
    expect_close(got, want, f"{what}: (a, b)", 1e-9, 1e-6)


def _exact(answer: Callable) -> None:
    _close(answer(10, 230.0, 20, 860.0), (3.0, 2.0), "t = 3 n + 2 n^2 at 10 and 20")


def _pure(answer: Callable) -> None:
    _close(answer(3, 36.0, 5, 100.0), (0.0, 4.0), "t = 4 n^2 at 3 and 5")
    _close(answer(3, 21.0, 5, 35.0), (7.0, 0.0), "t = 7 n at 3 and 5")


def _any_order(answer: Callable) -> None:
    _close(answer(20, 860.0, 10, 230.0), (3.0, 2.0), "the longer length first")


def _quoted(answer: Callable) -> None:
    (short, one), (long, two) = RUNS["pool"].items()
    for which in ("before", "after"):
        t1, t2 = getattr(one, which), getattr(two, which)
        a, b = answer(short, t1, long, t2)
        left = [a * n + b * n * n for n in (short, long)]
        expect_close(left, [t1, t2], f"the pool {which}: both times again", 0, 1e-6)


def two_terms(n1: int, t1: float, n2: int, t2: float) -> tuple[float, float]:
    """Divide by n: what is left is a straight line."""
    b = (t2 / n2 - t1 / n1) / (n2 - n1)
    return t1 / n1 - b * n1, b


def _constant_and_square(n1: int, t1: float, n2: int, t2: float) -> tuple:
    b = (t2 - t1) / (n2 * n2 - n1 * n1)
    return t1 - b * n1 * n1, b


def _slope(n1: int, t1: float, n2: int, t2: float) -> tuple:
    b = (t2 - t1) / (n2 - n1)
    return t1 / n1 - b, b


def _sorted_only(n1: int, t1: float, n2: int, t2: float) -> tuple:
    a, b = two_terms(n1, t1, n2, t2)
    return (a, b) if n1 < n2 else (a, -b)


fit = Exercise(
    number="11.2",
    title="Two points, two terms",
    stars=2,
    steps=(
        Step("it meets a made-up curve", _exact),
        Step("one of the terms may be zero", _pure),
        Step("the order of the points does not matter", _any_order),
        Step("it meets the quoted times of the pool", _quoted),
    ),
    solution=two_terms,
    wrong={
        "a constant for a": _constant_and_square,
        "a straight line": _slope,
        "sorted only": _sorted_only,
        "rounded": lambda *x: tuple(round(y) for y in two_terms(*x)),
        "swapped": lambda *x: two_terms(*x)[::-1],
    },
    right={
        "solved": lambda n1, t1, n2, t2: np.linalg.solve(
            [[n1, n1 * n1], [n2, n2 * n2]], [t1, t2]
        ),
    },
)

# ---- 11.3 ----------------------------------------------------------------------------


def _one(answer: Callable, times: tuple[float, ...], want: float, what: str) -> None:
    expect_close(answer(*times), want, f"{what}, times {times}: the share", 1e-6)


def _only_bound(answer: Callable) -> None:
    _one(answer, (8.0, 8.0, 4.0, 4.0), 0.0, "dropping the matrix changes nothing")


def _only_matrix(answer: Callable) -> None:
    _one(answer, (8.0, 4.0, 8.0, 4.0), 1.0, "the bound changes nothing")


def _factors(answer: Callable) -> None:
    _one(answer, (8.0, 4.0, 2.0, 1.0), 1 / 3, "factors of 2 and of 4")


def _either_order(answer: Callable) -> None:
    _one(answer, (8.0, 8.0, 4.0, 1.0), 1 / 3, "no gain alone, a factor of 4 as second")


def _adds_up(answer: Callable) -> None:
    times = (10.0, 9.0, 5.0, 4.8)
    matrix = answer(*times)
    bound = answer(times[0], times[2], times[1], times[3])
    expect_close(matrix + bound, 1.0, "the shares of both changes together", 1e-6)


def _harmful(answer: Callable) -> None:
    want = math.log(8 / 10 * 4 / 5) / 2 / math.log(8 / 5)
    _one(answer, (8.0, 10.0, 4.0, 5.0), want, "a change that makes things slower")


def share_of_matrix(
    before: float, no_matrix: float, bounded: float, both: float
) -> float:
    """Average both orders, in logarithms."""
    as_first = math.log(before / no_matrix)
    as_second = math.log(bounded / both)
    return (as_first + as_second) / 2 / math.log(before / both)


attribute = Exercise(
    number="11.3",
    title="Attribute the gain",
    stars=3,
    steps=(
        Step("a change without effect gets nothing", _only_bound),
        Step("a change with all the effect gets everything", _only_matrix),
        Step("factors multiply, so their logarithms add", _factors),
        Step("coming first and coming second count alike", _either_order),
        Step("the shares of both changes add up to 1", _adds_up),
        Step("a change that harms gets a negative share", _harmful),
    ),
    solution=share_of_matrix,
    wrong={
        "first only": lambda t, m, b, both: math.log(t / m) / math.log(t / both),
        "second only": lambda t, m, b, both: math.log(b / both) / math.log(t / both),
        "in milliseconds": lambda t, m, b, both: (
            ((t - m) + (b - both)) / 2 / (t - both)
        ),
        "never negative": lambda *x: max(0.0, share_of_matrix(*x)),
        "share of the other": lambda *x: 1 - share_of_matrix(*x),
        "all or nothing": lambda t, m, b, both: float(m < b),
    },
    right={
        "base two": lambda t, m, b, both: (
            math.log2(t / m * b / both) / math.log2((t / both) ** 2)
        )
    },
)

EXERCISES = (read_off, fit, attribute)
