"""Exercises on the running state and its algebra (chapter 4)."""

from collections.abc import Callable
from itertools import permutations

import numpy as np

from flashlib.exercises.answers import ch04 as answers
from flashlib.exercises.exercise import (
    Exercise,
    Step,
    expect,
    expect_close,
    expect_numbers,
)
from flashlib.row import SCORES, VALUES

State = tuple[float, float, np.ndarray]


def state_of(scores: np.ndarray, values: np.ndarray) -> State:
    """Return (m, l, acc) of a set of keys straight from the definition."""
    if len(scores) == 0:
        return -np.inf, 0.0, np.zeros(values.shape[1])
    m = scores.max()
    p = np.exp(scores - m)
    return float(m), float(p.sum()), p @ values


# ---- 4.1 -----------------------------------------------------------------------------


def _test_length(answer: object) -> None:
    expect_numbers(answer, (6,), "an exponent per key")


def _test_first_key(answer: object) -> None:
    expect(
        answer[0] == -np.inf,
        f"the first exponent is {answer[0]}; before the first key m is -inf, and "
        "m_old - m_new = -inf - 1",
    )


def _test_sign(answer: object) -> None:
    high = [float(x) for x in answer if x > 0]
    expect(not high, f"{high} are above 0; m never falls, so m_old - m_new never rises")


def _test_exponents(answer: object) -> None:
    running = np.maximum.accumulate(SCORES)
    expect_close(answer[1:], running[:-1] - running[1:], "the rest of the exponents")


def corr_exponents() -> list[float]:
    """Read off m before and after each key: 1, 3, 3, 5, 5, 5."""
    return [-np.inf, 1 - 3, 3 - 3, 3 - 5, 5 - 5, 5 - 5]


read_off = Exercise(
    number="4.1",
    title="The exponents of the row",
    stars=1,
    steps=(
        Step("one exponent for each of the six keys", _test_length),
        Step("the first key meets an empty state", _test_first_key),
        Step("no exponent is above zero", _test_sign),
        Step("each exponent is the old max minus the new one", _test_exponents),
    ),
    solution=corr_exponents,
    wrong={
        "empty_state_is_zero": [0, -2, 0, -2, 0, 0],
        "sign_flipped": [-np.inf, 2, 0, 2, 0, 0],
        "exponents_of_p": [-np.inf, 0, -1, 0, -1, -5],
        "final_max_known": [-np.inf, -2, -3, 0, -1, -5],
        "only_the_rises": [-np.inf, -2, -2],
        "none_for_the_first": [None, -2, 0, -2, 0, 0],
    },
    value=True,
    right={"an_array": np.array([-np.inf, -2, 0, -2, 0, 0])},
)

# ---- 4.2 -----------------------------------------------------------------------------


def _same(got: object, want: State, what: str) -> None:
    expect(
        isinstance(got, (tuple, list)) and len(got) == 3,
        f"{what} is {got!r}; expected the 3 parts (m, l, acc)",
    )
    for part, name in enumerate(("m", "l", "acc")):
        expect_close(got[part], want[part], f"{name} of {what}")


def _split(merge: Callable, at: int, what: str, swap: bool = False) -> None:
    left = state_of(SCORES[:at], VALUES[:at])
    right = state_of(SCORES[at:], VALUES[at:])
    with np.errstate(all="ignore"):
        got = merge(right, left) if swap else merge(left, right)
    _same(got, state_of(SCORES, VALUES), what)


def _test_right_larger(merge: Callable) -> None:
    _split(merge, 2, "keys 0-1 with keys 2-5 (max 3, then 5)")


def _test_left_larger(merge: Callable) -> None:
    _split(merge, 4, "keys 0-3 with keys 4-5 (max 5, then 4)")


def _test_order(merge: Callable) -> None:
    for at in range(1, 6):
        _split(merge, at, f"keys {at}-5 merged first, keys 0-{at - 1} second", True)


def _test_inputs_kept(merge: Callable) -> None:
    a, b = state_of(SCORES[:2], VALUES[:2]), state_of(SCORES[2:], VALUES[2:])
    merge(a, b)
    for left, kept, name in zip(merge.handed, (a, b), "ab", strict=True):
        expect_close(left[2], kept[2], f"acc of {name} after the call")


def _test_equal_maxima(merge: Callable) -> None:
    a, b = SCORES[[3, 1]], SCORES[[0, 3, 4]]
    got = merge(state_of(a, VALUES[[3, 1]]), state_of(b, VALUES[[0, 2, 4]]))
    whole = state_of(np.append(a, b), VALUES[[3, 1, 0, 2, 4]])
    _same(got, whole, "two parts that both have the max 5")


def _test_no_overflow(merge: Callable) -> None:
    a, b = state_of(SCORES[:3] + 1000, VALUES[:3]), state_of(SCORES[3:], VALUES[3:])
    with np.errstate(all="ignore"):
        _same(merge(b, a), merge(a, b), "scores near 1000, the other way round")
        _same(merge(a, b), a, "scores near 1000 with scores near 0")


def _test_identity(merge: Callable) -> None:
    empty, whole = state_of(SCORES[:0], VALUES[:0]), state_of(SCORES, VALUES)
    with np.errstate(all="ignore"):
        _same(merge(whole, empty), whole, "a state with the empty state")
        _same(merge(empty, whole), whole, "the empty state with a state")


def _test_two_empty(merge: Callable) -> None:
    empty = state_of(SCORES[:0], VALUES[:0])
    with np.errstate(all="ignore"):
        _same(merge(empty, empty), empty, "two empty states")


def merge_two(a: State, b: State) -> State:
    """Bring both states to the larger max, then add them."""
    m = max(a[0], b[0])
    if m == -np.inf:  # both empty: -inf - -inf would be NaN
        return a
    corr_a, corr_b = np.exp(a[0] - m), np.exp(b[0] - m)
    return m, a[1] * corr_a + b[1] * corr_b, a[2] * corr_a + b[2] * corr_b


def _unguarded(a: State, b: State) -> State:
    m = max(a[0], b[0])
    corr_a, corr_b = np.exp(a[0] - m), np.exp(b[0] - m)
    return m, a[1] * corr_a + b[1] * corr_b, a[2] * corr_a + b[2] * corr_b


def _l_not_rescaled(a: State, b: State) -> State:
    m, _, acc = merge_two(a, b)
    return m, a[1] + b[1], acc


def _acc_not_rescaled(a: State, b: State) -> State:
    m, l, _ = merge_two(a, b)
    return m, l, a[2] + b[2]


def _inverse_rescale(a: State, b: State) -> State:
    m = max(a[0], b[0])
    corr_a, corr_b = np.exp(m - a[0]), np.exp(m - b[0])
    return m, a[1] * corr_a + b[1] * corr_b, a[2] * corr_a + b[2] * corr_b


def _second_is_newest(a: State, b: State) -> State:
    corr = np.exp(a[0] - b[0])
    return b[0], a[1] * corr + b[1], a[2] * corr + b[2]


def _absolute_sums(a: State, b: State) -> State:
    m = max(a[0], b[0])
    corr_a, corr_b = np.exp(a[0]), np.exp(b[0])
    l, acc = a[1] * corr_a + b[1] * corr_b, a[2] * corr_a + b[2] * corr_b
    return m, l / np.exp(m), acc / np.exp(m)


def _in_place(a: State, b: State) -> State:
    m = max(a[0], b[0])
    if m == -np.inf:
        return a
    acc, other = a[2], b[2]
    acc *= np.exp(a[0] - m)
    acc += other * np.exp(b[0] - m)
    return m, a[1] * np.exp(a[0] - m) + b[1] * np.exp(b[0] - m), acc


merge = Exercise(
    number="4.2",
    title="Merge two states",
    stars=2,
    steps=(
        Step("the right part has the larger max", _test_right_larger),
        Step("the left part has the larger max", _test_left_larger),
        Step("the two parts may come in either order", _test_order),
        Step("two parts with the same max both count", _test_equal_maxima),
        Step("the inputs are left alone", _test_inputs_kept),
        Step("scores near 1000 do not overflow", _test_no_overflow),
        Step("the empty state changes nothing", _test_identity),
        Step("two empty states make an empty state", _test_two_empty),
    ),
    solution=merge_two,
    wrong={
        "unguarded": _unguarded,
        "l_not_rescaled": _l_not_rescaled,
        "acc_not_rescaled": _acc_not_rescaled,
        "inverse_rescale": _inverse_rescale,
        "second_is_newest": _second_is_newest,
        "absolute_sums": _absolute_sums,
        "in_place": _in_place,
        **answers.MERGE_WRONG,
    },
    right=answers.MERGE_RIGHT,
)

# ---- 4.3 -----------------------------------------------------------------------------


def _mean_rises(n: int) -> float:
    """Return the mean number of rises of the max over all orders of n scores."""
    orders = list(permutations(range(n)))
    return sum(len(set(np.maximum.accumulate(order))) for order in orders) / len(orders)


def _test_one_key(answer: Callable) -> None:
    expect_close(answer(1), 1.0, "the mean for one key")


def _test_all_orders(answer: Callable) -> None:
    for n in range(2, 8):
        expect_close(answer(n), _mean_rises(n), f"the mean over all orders of {n} keys")


def _test_long_row(answer: Callable) -> None:
    rng = np.random.default_rng(4)
    for n in (511, 40):
        highest = np.maximum.accumulate(rng.random((4000, n)), axis=1)
        rises = 1 + (np.diff(highest, axis=1) > 0).sum(axis=1)
        spread = 4 * rises.std() / np.sqrt(len(rises))
        expect_close(answer(n), rises.mean(), f"the mean for {n} keys", spread, 0.0)


def _test_one_more_key(answer: Callable) -> None:
    for n in (8, 20, 100, 511, 1000):
        more = float(answer(n) - answer(n - 1))
        expect_close(
            n * more,
            1.0,
            f"key {n} adds {more:.6g} to the mean, {n} times what it adds",
            atol=4e-6 * n,  # n times the rounding of a mean in float32
        )


def mean_rises(n: int) -> float:
    """Add up 1/j: key j raises the max when it is the largest of the first j."""
    return sum(1 / j for j in range(1, n + 1))


rises = Exercise(
    number="4.3",
    title="How often does the max rise?",
    stars=3,
    steps=(
        Step("one key is always a new max", _test_one_key),
        Step("2 to 7 keys, over all their orders", _test_all_orders),
        Step("511 keys, over four thousand random rows", _test_long_row),
        Step("each key adds what it should", _test_one_more_key),
    ),
    solution=mean_rises,
    wrong=answers.RISES_WRONG,
    right=answers.RISES_RIGHT,
)

EXERCISES = (read_off, merge, rises)
