"""Softmax against a chosen reference value, and the exercises on it (chapter 3)."""

from __future__ import annotations

import math

import numpy as np

from .exercise import Exercise, Step, UnfilledError, expect

ROW = (1.0, 3.0, 2.0, 5.0, 4.0, 0.0)
LARGEST_EXPONENT = float(np.log(np.finfo(np.float32).max))
SMALLEST_EXPONENT = float(np.log(np.finfo(np.float32).smallest_normal))


def shifted_softmax(scores: object, reference: float) -> np.ndarray:
    """Return softmax as float32 computes it against any reference value.

    Parameters
    ----------
    scores : array_like
        One row of scores; taken as float32.
    reference : float
        The value that is subtracted from each score before exp.

    Returns
    -------
    np.ndarray
        Weights, float32; NaN where float32 could not hold the terms.

    Examples
    --------
    >>> shifted_softmax([0.0, 0.0], reference=0.0)
    array([0.5, 0.5], dtype=float32)
    >>> shifted_softmax([0.0, 0.0], reference=104.0)
    array([nan, nan], dtype=float32)
    """
    row = np.asarray(scores, dtype=np.float32)
    with np.errstate(all="ignore"):
        p = np.exp(row - np.float32(reference))
        return p / p.sum()


def exact_softmax(scores: object) -> np.ndarray:
    """Return softmax of the same float32 scores, computed in float64 at the max."""
    row = np.asarray(scores, dtype=np.float32).astype(np.float64)
    p = np.exp(row - row.max())
    return p / p.sum()


def weight_error(scores: object, reference: float) -> float:
    """Return the largest error of a weight as a share of the largest weight."""
    exact = exact_softmax(scores)
    error = np.abs(shifted_softmax(scores, reference) - exact).max()
    return float(error / exact.max())


def _shown(values: np.ndarray) -> str:
    return np.array2string(values, precision=4, suppress_small=True, separator=", ")


# --- 3.1 ------------------------------------------------------------------------


def _three_numbers(answer: object) -> None:
    count = len(answer) if isinstance(answer, (list, tuple)) else 0
    expect(count == 3, f"answer is {answer!r}; expected a list of three whole numbers")
    if any(entry is ... for entry in answer):
        raise UnfilledError


def _survivors_step(place: int, offset: int) -> Step:
    def test(answer: list) -> None:
        weights = shifted_softmax(ROW, max(ROW) + offset)
        alive = int(np.count_nonzero(weights))
        expect(
            answer[place] == alive,
            f"you said {answer[place]}; expected the number of weights above 0 in "
            f"{_shown(weights)}",
        )

    return Step(f"keys with a weight above 0 at r = max + {offset}", test)


def _first_nan(answer: list) -> None:
    weights = shifted_softmax(ROW, max(ROW) + float(answer[2]))
    expect(
        bool(np.isnan(weights).all()),
        f"at r = max + {answer[2]} the weights are {_shown(weights)}; "
        "expected NaN in all six",
    )
    before = shifted_softmax(ROW, max(ROW) + float(answer[2]) - 1)
    expect(
        not np.isnan(before).any(),
        f"r = max + {answer[2]} gives NaN, but so does one less; expected the first",
    )


def read_the_cliff_solution() -> list[int]:
    # exp(-103) is the last one above 0: count the scores s with s - r >= -103.
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
    },
    value=True,
)

# --- 3.2 ------------------------------------------------------------------------


def _holds(policy: object, scores: np.ndarray) -> None:
    """Refuse a policy whose reference value spoils the weights of one row."""
    row = np.asarray(scores, dtype=np.float32)
    chosen = policy(row.copy())
    shown = _shown(row[:6])
    shown += f" (first 6 of {row.size})" if row.size > 6 else ""
    expect(
        np.ndim(chosen) == 0 and bool(np.isfinite(chosen)),
        f"for the row {shown} you return {chosen!r}; expected one finite number",
    )
    error = weight_error(row, float(chosen))
    expect(
        error < 1e-5,
        f"for the row {shown} you choose r = {float(chosen):.6g}, and r - max is "
        f"{float(chosen) - float(row.max()):+.6g}; the weights are off by {error:.2g} "
        "of the largest, expected less than 1e-05",
    )


def _rows_step(claim: str, *rows: object) -> Step:
    def test(policy: object) -> None:
        for row in rows:
            _holds(policy, np.asarray(row, dtype=np.float32))

    return Step(claim, test)


def _random_rows(policy: object) -> None:
    rng = np.random.default_rng(3)
    for _ in range(200):
        spread = 10.0 ** rng.uniform(-1, 3)
        center = rng.uniform(-1000, 1000)
        _holds(policy, rng.normal(center, spread, size=rng.integers(1, 65)))


def reference_solution(scores):
    # The max is finite as soon as one key is visible, and r - max is then 0.
    return scores.max()


safe_reference = Exercise(
    "3.2",
    "A safe reference value",
    2,
    (
        _rows_step("the row of six keys", ROW),
        _rows_step("scores far from zero", np.add(ROW, 1000), np.add(ROW, -1000)),
        _rows_step("one key far above the others", [0.0] * 15 + [200.0]),
        _rows_step("one key far below the others", [5.0, 4.0, -10_000.0]),
        _rows_step("a hidden key with score -inf", [1.0, -np.inf, 3.0]),
        Step("200 random rows of 1 to 64 keys", _random_rows),
    ),
    reference_solution,
    {
        "any r above the max": lambda s: s.max() + 100,
        "never subtract": lambda s: 0.0,
        "largest magnitude": lambda s: np.abs(s).max(),
        "the max, but not below zero": lambda s: max(0.0, s.max()),
        "the mean": lambda s: s.mean(),
        "the median": lambda s: np.median(s),
        "the first score": lambda s: s[0],
        "the smallest score": lambda s: s.min(),
        "middle of the range": lambda s: (s.min() + s.max()) / 2,
        "the whole row": lambda s: s,
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


def _impossible_step(claim: str, low: float, high: float, n: int) -> Step:
    def test(choose: object) -> None:
        chosen = float(choose(low, high, n))
        expect(
            math.isnan(chosen),
            f"max in [{low:g}, {high:g}], n = {n}: you choose r = {chosen:g}; expected "
            f"nan, because {high:g} - r + ln {n} <= {LARGEST_EXPONENT:.2f} and "
            f"r - {low:g} <= {-SMALLEST_EXPONENT:.2f} exclude each other",
        )

    return Step(claim, test)


def constant_solution(low, high, n):
    # n equal scores at the top of the range must not overflow the sum ...
    lowest = high + math.log(n) - 88.72
    # ... and one score at the bottom of it must stay a normal number.
    highest = low + 87.33
    return (lowest + highest) / 2 if lowest <= highest else math.nan


constant_reference = Exercise(
    "3.3",
    "One reference for every row",
    3,
    (
        _constant_step("a range around zero", -11.4, 11.4, 511),
        _constant_step("a range far from zero", 500.0, 560.0, 511),
        _constant_step("a range 150 wide", 0.0, 150.0, 511),
        _impossible_step("a range 200 wide has no r", -100.0, 100.0, 511),
        _impossible_step("nor one 172 wide with 10,000 keys", 20.0, 192.0, 10_000),
    ),
    constant_solution,
    {
        "always zero": lambda low, high, n: 0.0,
        "the top of the range": lambda low, high, n: high,
        "the bottom of the range": lambda low, high, n: low,
        "the middle, always": lambda low, high, n: (low + high) / 2,
        "never": lambda low, high, n: math.nan,
        "forgets that n terms add up": lambda low, high, n: (
            (low + high) / 2 if high - low <= 176 else math.nan
        ),
    },
)

EXERCISES = (read_the_cliff, safe_reference, constant_reference)
