"""Exercises on a weighted mean of values (chapter 1)."""

from collections.abc import Callable

import numpy as np

from flashlib.exercises.answers import ch01 as answers
from flashlib.exercises.exercise import (
    Exercise,
    Step,
    expect,
    expect_close,
    expect_numbers,
)
from flashlib.experiments.row_weights import weights_of
from flashlib.row import KEYS, QUERY, SCORES, VALUES

# --- 1.1 ------------------------------------------------------------------------


def _six_numbers(answer: object) -> None:
    expect_numbers(answer, (6,), "a weight per key")


def _add_up(answer: object) -> None:
    total = float(np.sum(answer))
    expect(abs(total - 1) < 0.03, f"they add up to {total:.4g}; expected 1")


def _not_negative(answer: object) -> None:
    low = [x for x in answer if x < 0]
    expect(not low, f"{low} is below 0; a power of e is not, nor is a share of a sum")


def _key_four(answer: object) -> None:
    ratio = answer[3] / answer[4] if answer[4] else np.inf
    expect(
        2.5 < ratio < 2.95,
        f"key 3 weighs {ratio:.3g} times as much as key 4; expected e = {np.e:.3g}, "
        "because its score is higher by 1",
    )


def _all_six(answer: object) -> None:
    right = weights_of(SCORES)
    for j, (got, want) in enumerate(zip(answer, right, strict=True)):
        expect(
            abs(got - want) < 0.006,
            f"the weight of key {j} is {got:.4g}; expected "
            f"e^{SCORES[j]:g} / {np.exp(SCORES).sum():.1f} = {want:.4f}",
        )


def six_weights_solution() -> list[float]:
    """Divide every power of e by the sum of all six."""
    terms = [2.718, 20.09, 7.389, 148.4, 54.60, 1.0]  # e to the 1, 3, 2, 5, 4, 0
    return [round(term / sum(terms), 2) for term in terms]


six_weights = Exercise(
    "1.1",
    "Six weights",
    1,
    (
        Step("six numbers", _six_numbers),
        Step("the weights add up to 1", _add_up),
        Step("no weight is negative", _not_negative),
        Step("one more unit of score multiplies a weight by e", _key_four),
        Step("each weight, to two decimals", _all_six),
    ),
    six_weights_solution,
    {
        "scores divided by their sum": [1 / 15, 3 / 15, 2 / 15, 5 / 15, 4 / 15, 0.0],
        "not divided": [2.718, 20.09, 7.389, 148.4, 54.60, 1.0],
        "powers of 2": list(np.exp2(SCORES) / np.exp2(SCORES).sum()),
        "sorted": sorted(weights_of(SCORES).tolist()),
        "keys 0 and 5 swapped": list(weights_of(SCORES)[[5, 1, 2, 3, 4, 0]]),
        "one weight missing": [0.09, 0.03, 0.63, 0.23, 0.02],
        **answers.SIX_WEIGHTS_WRONG,
    },
    value=True,
    right=answers.SIX_WEIGHTS_RIGHT,
)

# --- 1.2 ------------------------------------------------------------------------


def _plain_mean(attend: Callable) -> None:
    got = attend(np.zeros(2), KEYS, VALUES)
    expect_close(got, VALUES.mean(axis=0), "with q = (0, 0) the output")


def _right(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    return weights_of(k @ q / np.sqrt(q.size)) @ v


def _the_row(attend: Callable) -> None:
    got = attend(QUERY, KEYS, VALUES)
    expect_close(got, _right(QUERY, KEYS, VALUES), "the output of the row")


def _wider(attend: Callable) -> None:
    rng = np.random.default_rng(1)
    q, k, v = rng.normal(size=16), rng.normal(size=(5, 16)), rng.normal(size=(5, 3))
    got = attend(q, k, v)
    expect_close(got, _right(q, k, v), "with head_dim 16 and values of width 3 it")


def _shifted(attend: Callable) -> None:
    moved = attend(QUERY, KEYS + np.array([3.0, -2.0]), VALUES)
    stays = attend(QUERY, KEYS, VALUES)
    expect_close(moved, stays, "after adding (3, -2) to every key the output")


def attend_solution(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Weigh the values by the exponentials of the scaled scores."""
    scores = k @ q / np.sqrt(q.size)
    terms = np.exp(scores)
    return terms @ v / terms.sum()


write_attend = Exercise(
    "1.2",
    "Attention for one query",
    2,
    (
        Step("equal scores give the plain mean of the values", _plain_mean),
        Step("the row, with scores divided by the square root of 2", _the_row),
        Step("other widths", _wider),
        Step("one vector added to every key changes nothing", _shifted),
    ),
    attend_solution,
    {
        "no scale": lambda q, k, v: weights_of(k @ q) @ v,
        "divides by head_dim": lambda q, k, v: weights_of(k @ q / q.size) @ v,
        "scale of 2 for every width": lambda q, k, v: weights_of(k @ q / 2**0.5) @ v,
        "never divides by the sum": lambda q, k, v: np.exp(k @ q / q.size**0.5) @ v,
        "scores as weights": lambda q, k, v: (k @ q) @ v / len(v),
        "mean over the wrong axis": lambda q, k, v: v.mean(axis=1),
        "averages the keys": lambda q, k, v: weights_of(k @ q / q.size**0.5) @ k,
        "takes the best key": lambda q, k, v: v[np.argmax(k @ q)],
        "magnitude of the scores": lambda q, k, v: (
            weights_of(np.abs(k @ q) / q.size**0.5) @ v
        ),
        **answers.ATTEND_WRONG,
    },
    right=answers.ATTEND_RIGHT,
)

# --- 1.3 ------------------------------------------------------------------------


def _one_number(got: object) -> float:
    number = np.ndim(got) == 0 and np.asarray(got).dtype.kind in "fiu"
    expect(number, f"your function returned {got!r}; expected 1 number, the score")
    return float(got)


def _weight_when(score: float, others: np.ndarray) -> float:
    return float(weights_of(np.append(others, score))[-1])


def _reaches(score_for: Callable, others: list[float], weight: float) -> None:
    score = _one_number(score_for(np.array(others, dtype=np.float64), weight))
    got = _weight_when(score, np.array(others))
    expect(
        abs(got - weight) < 1e-6,
        f"against scores {others} you return {score:.6g}, which gives a weight of "
        f"{got:.6g}; expected {weight:g}",
    )


def _even_match(score_for: Callable) -> None:
    _reaches(score_for, [2.0], 0.5)


def _two_rivals(score_for: Callable) -> None:
    _reaches(score_for, [2.0, 2.0], 0.5)


def _other_odds(score_for: Callable) -> None:
    _reaches(score_for, [2.0], 0.9)


def _back_to_five(score_for: Callable) -> None:
    others = np.delete(SCORES, 3)
    score = _one_number(score_for(others, _weight_when(5.0, others)))
    expect_close(score, 5.0, "the score that key 3 needs for the weight it has")


def _random(score_for: Callable) -> None:
    rng = np.random.default_rng(13)
    for _ in range(50):
        others = rng.normal(0, 4, size=rng.integers(1, 9)).round(2).tolist()
        _reaches(score_for, others, round(float(rng.uniform(0.01, 0.99)), 2))


def score_for_weight(others: np.ndarray, weight: float) -> float:
    """Solve weight = e^s / (e^s + rest) for s.

    All rivals count as one with the score log(rest); the wanted odds are added to it.
    """
    rest = np.log(np.exp(others).sum())
    return rest + np.log(weight / (1 - weight))


buy_weight = Exercise(
    "1.3",
    "The price of a weight",
    3,
    (
        Step("half the weight against one rival: its own score", _even_match),
        Step("half the weight against two equal rivals", _two_rivals),
        Step("nine tenths against one rival", _other_odds),
        Step("the row gives key 3 its own score back", _back_to_five),
        Step("fifty random rows", _random),
    ),
    score_for_weight,
    {
        "the best rival": lambda others, w: others.max(),
        "the sum of the rivals": lambda others, w: others.sum(),
        "the mean of the rivals": lambda others, w: others.mean(),
        "the odds alone": lambda others, w: np.log(w / (1 - w)),
        "the weight for the odds": lambda others, w: (
            np.log(np.exp(others).sum()) + np.log(w)
        ),
        "the best rival and the odds": lambda others, w: (
            others.max() + np.log(w / (1 - w))
        ),
        "linear in the weight": lambda others, w: (
            np.log(np.exp(others).sum()) + 4 * (w - 0.5)
        ),
        "an array of one": lambda others, w: np.array([score_for_weight(others, w)]),
    },
)

EXERCISES = (six_weights, write_attend, buy_weight)
