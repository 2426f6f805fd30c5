"""Exercises on tiles, cores and what they tell each other (chapter 22)."""

from collections.abc import Callable
from functools import cache
from itertools import combinations

import numpy as np

from flashlib.exercises.exercise import (
    Exercise,
    Step,
    expect,
    expect_close,
    expect_numbers,
)
from flashlib.programs.cache_call import decode_cached
from flashlib.row import SCORES, VALUES

# ---- 22.1 ----------------------------------------------------------------------------

#: Batch, heads, slots and options of the five calls.
CALLS = (
    (1, 8, 512, {"lnc": 1}),
    (1, 8, 512, {"lnc": 2}),
    (1, 8, 1024, {"lnc": 2, "tile": 128}),
    (4, 40, 512, {"lnc": 2}),
    (4, 40, 512, {"lnc": 2, "out_in_sb": True}),
)


@cache
def messages(call: int) -> int:
    """Run one of the calls and count what the first core sends."""
    batch, heads, slots, options = CALLS[call]
    q = np.zeros((batch, heads, 1, 8), np.float32)
    k = v = np.zeros((batch, slots, 8), np.float32)
    trace = decode_cached(q, k, v, **options).traces[0]
    return trace.histogram().get("sendrecv", 0)


def _test_five(answer: object) -> None:
    expect_numbers(answer, (5,), "messages of a core")


def _test_call(call: int, what: str) -> Callable:
    def test(answer: object) -> None:
        want = messages(call)
        expect(answer[call] == want, f"{what}: {answer[call]}; the trace has {want}")

    return test


def five_counts() -> list[int]:
    """Maximum, sum and output, once; whole batch items need nothing."""
    return [0, 3, 3, 0, 1]


counts = Exercise(
    number="22.1",
    title="Five calls, how many messages",
    stars=1,
    steps=(
        Step("five numbers", _test_five),
        Step("one core", _test_call(0, "one core")),
        Step("half of the keys each", _test_call(1, "512 keys on two cores")),
        Step("the same in four tiles each", _test_call(2, "four tiles on each core")),
        Step("half of the batch each", _test_call(3, "batch 4, 40 heads")),
        Step("and the output on chip", _test_call(4, "output kept on chip")),
    ),
    solution=five_counts,
    wrong={
        "maximum_and_sum_only": [0, 2, 2, 0, 1],
        "three_per_tile": [0, 3, 12, 0, 1],
        "batch_like_keys": [0, 3, 3, 3, 3],
        "output_needs_nothing": [0, 3, 3, 0, 0],
        "one_core_talks": [3, 3, 3, 0, 1],
    },
    value=True,
)

# ---- 22.2 ----------------------------------------------------------------------------


def _walk(answer: Callable, cuts: tuple[int, ...], s: np.ndarray, v: np.ndarray):
    state = np.inf, 0.0, np.zeros(2)
    for part, rows in zip(np.split(s, cuts), np.split(v, cuts), strict=True):
        state = answer(state, part, rows)
        expect(
            isinstance(state, (tuple, list, np.ndarray)) and len(state) == 3,
            f"the state is {state!r}; expected 3 entries: negated max, sum, numerator",
        )
    return state


def _want(s: np.ndarray, v: np.ndarray) -> tuple[float, float, np.ndarray]:
    p = np.exp(s - s.max())
    return -s.max(), p.sum(), p @ v


def _test_walk(cuts: tuple[int, ...], scores: object, what: str) -> Callable:
    def test(answer: Callable) -> None:
        s = np.asarray(scores, float)
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            got = _walk(answer, cuts, s, VALUES)
        names = ("the negated max", "the sum", "the numerator")
        for name, seen, right in zip(names, got, _want(s, VALUES), strict=True):
            expect_close(seen, right, f"{what}: {name}")

    return test


def absorb(state: tuple, s: np.ndarray, v: np.ndarray) -> tuple:
    """Fold one tile into a state whose maximum is kept negated."""
    before, total, acc = state
    neg = min(before, -s.max())
    if neg == np.inf:
        return state
    corr = np.exp(neg - before)
    p = np.exp(s + neg)
    return neg, corr * total + p.sum(), corr * acc + p @ v


def _absorb_max(state: tuple, s: np.ndarray, v: np.ndarray) -> tuple:
    before, total, acc = state
    neg = max(before, -s.max()) if before != np.inf else -s.max()
    corr, p = np.exp(neg - before), np.exp(s + neg)
    return neg, corr * total + p.sum(), corr * acc + p @ v


def _absorb_inverse(state: tuple, s: np.ndarray, v: np.ndarray) -> tuple:
    before, total, acc = state
    neg = min(before, -s.max())
    corr = np.exp(before - neg) if before != np.inf else 0.0
    p = np.exp(s + neg)
    return neg, corr * total + p.sum(), corr * acc + p @ v


def _absorb_sum_only(state: tuple, s: np.ndarray, v: np.ndarray) -> tuple:
    neg, total, _ = _absorb_unguarded(state, s, v)
    return neg, total, state[2] + np.exp(s + neg) @ v


def _absorb_unguarded(state: tuple, s: np.ndarray, v: np.ndarray) -> tuple:
    before, total, acc = state
    neg = min(before, -s.max())
    corr, p = np.exp(neg - before), np.exp(s + neg)
    return neg, corr * total + p.sum(), corr * acc + p @ v


HIDDEN = [-np.inf, -np.inf]
tile = Exercise(
    number="22.2",
    title="A tile with the sign turned",
    stars=2,
    steps=(
        Step("one tile", _test_walk((), SCORES, "six keys at once")),
        Step(
            "tiles with falling maxima",
            _test_walk((2, 4), [5, 4, 3, 1, 2, 0], "maxima 5, 3, 2"),
        ),
        Step("tiles with rising maxima", _test_walk((2, 4), SCORES, "the row")),
        Step(
            "a hidden tile behind a visible one",
            _test_walk((2, 4), [1, 3, *HIDDEN, 4, 0], "hidden tile in the middle"),
        ),
        Step(
            "hidden tiles in front",
            _test_walk((2, 4), [*HIDDEN, *HIDDEN, 4, 0], "two hidden tiles in front"),
        ),
    ),
    solution=absorb,
    wrong={
        "max_of_the_negated": _absorb_max,
        "correction_inverted": _absorb_inverse,
        "corrects_the_sum_only": _absorb_sum_only,
        "no_guard": _absorb_unguarded,
    },
    right={
        "a list": lambda *x: list(absorb(*x)),
        "an array": lambda *x: np.array(absorb(*x), object),
    },
)

# ---- 22.3 ----------------------------------------------------------------------------


def _row(s: np.ndarray, v: np.ndarray) -> np.ndarray:
    p = np.exp(s - s.max())
    return p @ v / p.sum()


def _held(answer: Callable, s: np.ndarray, v: np.ndarray, cuts: list[int]) -> None:
    with np.errstate(all="ignore"):
        got = answer(s, v, cuts)
    expect_close(got, _row(s, v), f"cuts {cuts}: the output", 1e-9, 1e-9)


def _test_two(answer: Callable) -> None:
    _held(answer, SCORES, VALUES, [3])


def _test_all_cuts(answer: Callable) -> None:
    for count in range(6):
        for cuts in combinations(range(1, 6), count):
            _held(answer, SCORES, VALUES, list(cuts))


def _test_empty(answer: Callable) -> None:
    _held(answer, SCORES, VALUES, [0, 4, 4])
    _held(answer, SCORES, VALUES, [6])


def _test_hidden(answer: Callable) -> None:
    for shown in (np.arange(6) < 3, np.arange(6) >= 3):
        _held(answer, np.where(shown, SCORES, -np.inf), VALUES, [3])


def _test_hot(answer: Callable) -> None:
    _held(answer, SCORES + 900, VALUES, [2, 3])
    _held(answer, SCORES - 900, VALUES, [2, 3])


def _test_random(answer: Callable) -> None:
    rng = np.random.default_rng(22)
    for _ in range(20):
        n = int(rng.integers(1, 60))
        cuts = sorted(rng.integers(0, n + 1, 4).tolist())
        _held(answer, 30 * rng.normal(size=n), rng.normal(size=(n, 3)), cuts)


def shard(s: np.ndarray, v: np.ndarray, cuts: list[int]) -> np.ndarray:
    """Let the parts exchange a maximum, then a sum, then a numerator."""
    parts = list(zip(np.split(s, cuts), np.split(v, cuts), strict=True))
    top = max(own.max(initial=-np.inf) for own, _ in parts)
    exps = [np.exp(own - top) for own, _ in parts]
    total = sum(p.sum() for p in exps)
    return sum(p @ rows for p, (_, rows) in zip(exps, parts, strict=True)) / total


def _parts(s: np.ndarray, v: np.ndarray, cuts: list[int]):
    return list(zip(np.split(s, cuts), np.split(v, cuts), strict=True))


def _mean_of_outputs(s: np.ndarray, v: np.ndarray, cuts: list[int]) -> np.ndarray:
    return np.mean([_row(*part) for part in _parts(s, v, cuts)], axis=0)


def _own_maxima(s: np.ndarray, v: np.ndarray, cuts: list[int]) -> np.ndarray:
    exps = [(np.exp(x - x.max(initial=-1e9)), y) for x, y in _parts(s, v, cuts)]
    return sum(p @ y for p, y in exps) / sum(p.sum() for p, _ in exps)


def _no_maximum(s: np.ndarray, v: np.ndarray, cuts: list[int]) -> np.ndarray:
    exps = [(np.exp(x), y) for x, y in _parts(s, v, cuts)]
    return sum(p @ y for p, y in exps) / sum(p.sum() for p, _ in exps)


def _from_zero(s: np.ndarray, v: np.ndarray, cuts: list[int]) -> np.ndarray:
    parts = _parts(s, v, cuts)
    top = max(x.max(initial=0.0) for x, _ in parts)
    exps = [(np.exp(x - top), y) for x, y in parts]
    return sum(p @ y for p, y in exps) / sum(p.sum() for p, _ in exps)


def _merge_unguarded(s: np.ndarray, v: np.ndarray, cuts: list[int]) -> np.ndarray:
    m, total, acc = -np.inf, 0.0, np.zeros(v.shape[1])
    for x, y in _parts(s, v, cuts):
        own = x.max(initial=-np.inf)
        p = np.exp(x - own)
        new = max(m, own)
        a, b = np.exp(m - new), np.exp(own - new)
        m, total, acc = new, a * total + b * p.sum(), a * acc + b * (p @ y)
    return acc / total


invariance = Exercise(
    number="22.3",
    title="Prove that cuts do not matter",
    stars=3,
    steps=(
        Step("the row on two cores", _test_two),
        Step("all 32 ways to cut the row", _test_all_cuts),
        Step("a core without keys", _test_empty),
        Step("a core whose keys are all hidden", _test_hidden),
        Step("scores of 900 and of -900", _test_hot),
        Step("random rows and random cuts", _test_random),
    ),
    solution=shard,
    wrong={
        "mean_of_outputs": _mean_of_outputs,
        "own_maxima": _own_maxima,
        "no_maximum": _no_maximum,
        "maximum_from_zero": _from_zero,
        "merge_without_a_guard": _merge_unguarded,
    },
)

EXERCISES = (counts, tile, invariance)
