"""Exercises on the running state and its algebra (chapter 4)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations

import numpy as np

from .ch01 import SCORES, VALUES
from .exercise import Exercise, Step, expect, expect_close

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
    size = np.shape(answer)
    expect(size == (6,), f"the answer has shape {size}; expected one exponent per key")


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
    },
    value=True,
)

# ---- 4.2 -----------------------------------------------------------------------------


def _same(got: object, want: State, what: str) -> None:
    expect(
        isinstance(got, tuple) and len(got) == 3,
        f"{what} is {got!r}; expected a tuple (m, l, acc)",
    )
    for part, name in enumerate(("m", "l", "acc")):
        expect_close(got[part], want[part], f"{name} of {what}", atol=1e-9, rtol=1e-9)


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
    before = a[2].copy(), b[2].copy()
    merge(a, b)
    for state, kept, name in ((a, before[0], "a"), (b, before[1], "b")):
        expect_close(state[2], kept, f"acc of {name} after the call")


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
    },
)

# ---- 4.3 -----------------------------------------------------------------------------


def _mean_rises(n: int) -> float:
    """Return the mean number of rises of the max over all orders of n scores."""
    orders = list(permutations(range(n)))
    return sum(len(set(np.maximum.accumulate(order))) for order in orders) / len(orders)


def _test_one_key(answer: Callable) -> None:
    expect_close(answer(1), 1.0, "the mean for one key")


def _test_all_orders(answer: Callable) -> None:
    for n in (2, 3, 6):
        expect_close(answer(n), _mean_rises(n), f"the mean over all orders of {n} keys")


def _test_long_row(answer: Callable) -> None:
    rng = np.random.default_rng(4)
    scores = rng.random((4000, 511))
    rises = 1 + (np.diff(np.maximum.accumulate(scores, axis=1), axis=1) > 0).sum(axis=1)
    spread = 4 * rises.std() / np.sqrt(len(rises))
    expect_close(answer(511), rises.mean(), "the mean for 511 keys", spread, 0.0)


def mean_rises(n: int) -> float:
    """Add up 1/j: key j raises the max when it is the largest of the first j."""
    return sum(1 / j for j in range(1, n + 1))


def _log_base_e(n: int) -> float:
    return 1 + np.log(n)


def _half_the_keys(n: int) -> float:
    return (n + 1) / 2


def _log_base_2(n: int) -> float:
    return 1 + np.log2(n) / 2


def _without_first(n: int) -> float:
    return sum(1 / j for j in range(2, n + 1))


rises = Exercise(
    number="4.3",
    title="How often does the max rise?",
    stars=3,
    steps=(
        Step("one key is always a new max", _test_one_key),
        Step("2, 3 and 6 keys, over all their orders", _test_all_orders),
        Step("511 keys, over four thousand random rows", _test_long_row),
    ),
    solution=mean_rises,
    wrong={
        "half_the_keys": _half_the_keys,
        "log_base_e": _log_base_e,
        "log_base_2": _log_base_2,
        "without_first": _without_first,
    },
)

EXERCISES = (read_off, merge, rises)
