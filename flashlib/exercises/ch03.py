"""Exercises on the anchor of a softmax (chapter 3)."""

import math
from collections.abc import Callable

import numpy as np

from flashlib.exercises.exercise import Exercise, Step, expect, expect_numbers
from flashlib.exercises.guard import WrongStepError
from flashlib.experiments.row_weights import (
    exact_softmax,
    moved_softmax,
    shifted_softmax,
    weight_error,
)
from flashlib.row import SCORES

LARGEST_EXPONENT = float(np.log(np.finfo(np.float32).max))
SMALLEST_EXPONENT = float(np.log(np.finfo(np.float32).smallest_normal))


def _shown(values: np.ndarray) -> str:
    return np.array2string(values, precision=4, suppress_small=True, separator=", ")


# --- 3.1 ------------------------------------------------------------------------


def _three_numbers(answer: object) -> None:
    expect_numbers(answer, (3,), "two counts and an offset")
    broken = [x for x in answer if x != round(x)]
    expect(not broken, f"{broken} is not whole; expected whole numbers")


def _survivors_step(place: int, offset: int) -> Step:
    def test(answer: list) -> None:
        weights = shifted_softmax(SCORES, max(SCORES) + offset)
        alive = int(np.count_nonzero(weights))
        expect(
            answer[place] == alive,
            f"you said {answer[place]}; expected the number of weights above 0 in "
            f"{_shown(weights)}",
        )

    return Step(f"keys with a weight above 0 at r = max + {offset}", test)


def _first_nan(answer: list) -> None:
    weights = shifted_softmax(SCORES, max(SCORES) + float(answer[2]))
    expect(
        bool(np.isnan(weights).all()),
        f"at r = max + {answer[2]} the weights are {_shown(weights)}; "
        "expected NaN in all six",
    )
    before = shifted_softmax(SCORES, max(SCORES) + float(answer[2]) - 1)
    expect(
        not np.isnan(before).any(),
        f"r = max + {answer[2]} gives NaN, but so does one less; expected the first",
    )


def read_the_cliff_solution() -> list[int]:
    """Count the scores s with s - r >= -103: exp(-103) is the last one above 0."""
    return [4, 1, 104]


read_the_cliff = Exercise(
    "3.1",
    "Read the cliff",
    1,
    (
        Step("three whole numbers", _three_numbers),
        _survivors_step(0, 100),
        _survivors_step(1, 103),
        Step("the first whole offset at which all weights are NaN", _first_nan),
    ),
    read_the_cliff_solution,
    {
        "counts all keys": [6, 1, 104],
        "nobody survives 103": [4, 0, 104],
        "cliff at the smallest normal number": [4, 1, 88],
        "one past the cliff": [4, 1, 105],
        "one number": 104,
        "between two offsets": [4, 1, 104.9],
        "a yes for a count": [4, True, 104],
    },
    value=True,
    right={"an array": np.array([4.0, 1.0, 104.0])},
)

# --- 3.2 ------------------------------------------------------------------------


def _pair(policy: object, first: np.ndarray, second: np.ndarray) -> tuple[float, float]:
    chosen = policy(first.copy(), second.copy())
    expect(
        np.shape(chosen) == (2,) and bool(np.isfinite(chosen).all()),
        f"for {_halves(first, second)} you return {chosen!r}; expected two finite "
        "numbers (r1, r2)",
    )
    return float(chosen[0]), float(chosen[1])


def _halves(*halves: np.ndarray) -> str:
    shown = (_shown(half[:4]) + ("..." if half.size > 4 else "") for half in halves)
    return "the halves " + " and ".join(shown)


def _holds(policy: object, first: np.ndarray, second: np.ndarray) -> None:
    """Refuse anchors that spoil the weights of one row."""
    r1, r2 = _pair(policy, first, second)
    exact = exact_softmax(np.concatenate([first, second]))
    error = np.abs(moved_softmax(first, second, r1, r2) - exact).max() / exact.max()
    expect(
        bool(error < 1e-5),
        f"for {_halves(first, second)} with the maxima {first.max():g} and "
        f"{second.max():g} you choose r1 = {r1:.6g} and r2 = {r2:.6g}; the weights are "
        f"off by {error:.2g} of the largest, expected less than 1e-05",
    )


def _rows_step(claim: str, *rows: tuple[object, object]) -> Step:
    def test(policy: object) -> None:
        for first, second in rows:
            _holds(policy, np.float32(first), np.float32(second))

    return Step(claim, test)


def _does_not_look_ahead(policy: object) -> None:
    first = np.float32(SCORES[:3])
    before = _pair(policy, first, np.float32(SCORES[3:]))[0]
    after = _pair(policy, first, np.float32([50.0, -50.0]))[0]
    expect(
        before == after,
        f"r1 of the first half {_shown(first)} is {before:g} or {after:g}, depending "
        "on the second half, which has not been read yet",
    )


def _random_rows(policy: object) -> None:
    rng = np.random.default_rng(3)
    for _ in range(200):
        spread = 10.0 ** rng.uniform(-1, 3)
        centers = rng.uniform(-1000, 1000) + rng.normal(0, spread, 2)
        sizes = rng.integers(1, 33, 2)
        draw = zip(centers, sizes, strict=True)
        halves = (rng.normal(center, spread, size) for center, size in draw)
        _holds(policy, *map(np.float32, halves))


def anchors_solution(first: np.ndarray, second: np.ndarray) -> tuple[float, float]:
    """Take the largest score so far, once for the first half and once for both."""
    r1 = first.max()
    return r1, max(r1, second.max())


moving_anchor = Exercise(
    "3.2",
    "An anchor that moves",
    2,
    (
        _rows_step("the row of six keys", (SCORES[:3], SCORES[3:])),
        Step("r1 does not depend on the second half", _does_not_look_ahead),
        _rows_step(
            "scores far from zero",
            (np.add(SCORES[:3], 1000), np.add(SCORES[3:], 1000)),
            (np.add(SCORES[:3], -1000), np.add(SCORES[3:], -1000)),
        ),
        _rows_step("a second half far above the first", (SCORES[:3], [300.0, 301.0])),
        _rows_step("a second half far below the first", ([300.0, 301.0], SCORES[3:])),
        _rows_step("hidden keys with score -inf", ([1.0, -np.inf], [-np.inf, 3.0])),
        Step("200 random rows of 2 to 64 keys", _random_rows),
    ),
    anchors_solution,
    {
        "knows the max of the row": lambda a, b: (max(*a, *b), max(*a, *b)),
        "never moves": lambda a, b: (a.max(), a.max()),
        "the newest max": lambda a, b: (a.max(), b.max()),
        "never subtract": lambda a, b: (0.0, 0.0),
        "any r above the max": lambda a, b: (a.max() + 100, max(*a, *b) + 100),
        "largest magnitude": lambda a, b: (
            np.abs(a).max(),
            np.abs([*a, *b]).max(),
        ),
        "the max, but not below zero": lambda a, b: (
            max(0.0, *a),
            max(0.0, *a, *b),
        ),
        "the means": lambda a, b: (a.mean(), np.mean([*a, *b])),
        "the first scores": lambda a, b: (a[0], b[0]),
        "the smallest scores": lambda a, b: (a.min(), min(*a, *b)),
        "one number": lambda a, b: a.max(),
    },
)

# --- 3.3 ------------------------------------------------------------------------


def _constant_step(claim: str, low: float, high: float, n: int) -> Step:
    """Check one range of the max with its two worst rows, in float32."""

    def test(choose: object) -> None:
        chosen = float(choose(low, high, n))
        for top in (low, high):
            error = weight_error(np.full(n, top), chosen)
            expect(
                error < 1e-4,
                f"max in [{low:g}, {high:g}], n = {n}: you choose r = {chosen:g}; a "
                f"row of {n} scores of {top:g} then has an error of {error:.2g}, "
                "expected less than 0.0001",
            )

    return Step(claim, test)


def _or_nan(choose: Callable, low: float, high: float, n: int) -> float:
    """Return what is chosen; None is told what stands for no anchor here."""
    try:
        return float(choose(low, high, n))
    except WrongStepError as wrong:
        hint = f"max in [{low:g}, {high:g}], n = {n}: where no r exists, expected"
        raise WrongStepError(f"{wrong}\n{hint} math.nan") from None


def _impossible_step(claim: str, low: float, high: float, n: int) -> Step:
    def test(choose: object) -> None:
        chosen = _or_nan(choose, low, high, n)
        expect(
            math.isnan(chosen),
            f"max in [{low:g}, {high:g}], n = {n}: you choose r = {chosen:g}; expected "
            f"nan, because {high:g} - r + ln {n} <= {LARGEST_EXPONENT:.2f} and "
            f"r - {low:g} <= {-SMALLEST_EXPONENT:.2f} exclude each other",
        )

    return Step(claim, test)


def constant_solution(low: float, high: float, n: int) -> float:
    """Keep the sum of n terms finite and the smallest of them normal."""
    # n equal scores at the top of the range must not overflow the sum ...
    lowest = high + math.log(n) - 88.72
    # ... and one score at the bottom of it must stay a normal number.
    highest = low + 87.33
    return (lowest + highest) / 2 if lowest <= highest else math.nan


constant_anchor = Exercise(
    "3.3",
    "One anchor for every row",
    3,
    (
        _constant_step("a range around zero", -11.4, 11.4, 511),
        _constant_step("a range far from zero", 500.0, 560.0, 511),
        _constant_step("a range 150 wide", 0.0, 150.0, 511),
        _constant_step("175 wide for rows of two keys", -60.0, 115.0, 2),
        _constant_step("169.5 wide for rows of 511", -60.0, 109.5, 511),
        _impossible_step("a range 200 wide has no r", -100.0, 100.0, 511),
        _impossible_step("nor one 172 wide with 10,000 keys", 20.0, 192.0, 10_000),
        _impossible_step("nor one 175 wide with 511", -60.0, 115.0, 511),
    ),
    constant_solution,
    {
        "always zero": lambda low, high, n: 0.0,
        "the top of the range": lambda low, high, n: high,
        "the bottom of the range": lambda low, high, n: low,
        "the middle, always": lambda low, high, n: (low + high) / 2,
        "never": lambda low, high, n: math.nan,
        "None for no r": lambda low, high, n: (
            None
            if math.isnan(constant_solution(low, high, n))
            else constant_solution(low, high, n)
        ),
        "forgets that n terms add up": lambda low, high, n: (
            (low + high) / 2 if high - low <= 176 else math.nan
        ),
        "one width for every n": lambda low, high, n: (
            (low + high) / 2 if high - low <= 169.7 else math.nan
        ),
        "the middle, moved by nothing": lambda low, high, n: (
            (low + high) / 2 if high - low + math.log(n) <= 176.05 else math.nan
        ),
    },
    right={
        "the upper end": lambda low, high, n: (
            low + 87.3 if high - low + math.log(n) <= 176 else math.nan
        ),
        "a float32": lambda low, high, n: np.float32(constant_solution(low, high, n)),
    },
)

EXERCISES = (read_the_cliff, moving_anchor, constant_anchor)
