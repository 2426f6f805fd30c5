"""More answers to the exercises on the running state (chapter 4)."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

State = Sequence


def _scaled_sum(a: State, b: State, m: float, at_ties: float) -> State:
    if m == -np.inf:
        return [m, 0.0, np.zeros_like(a[2])]
    corr_a, corr_b = np.exp(a[0] - m), np.exp(b[0] - m)
    if a[0] == b[0]:
        corr_b *= at_ties
    return [m, a[1] * corr_a + b[1] * corr_b, a[2] * corr_a + b[2] * corr_b]


def _drops_one_at_equal_maxima(a: State, b: State) -> State:
    return _scaled_sum(a, b, max(a[0], b[0]), at_ties=0.0)


def _halves_at_equal_maxima(a: State, b: State) -> State:
    m, l, acc = _scaled_sum(a, b, max(a[0], b[0]), at_ties=1.0)
    share = 0.5 if a[0] == b[0] else 1.0
    return m, l * share, acc * share


def _list(a: State, b: State) -> State:
    return _scaled_sum(a, b, max(a[0], b[0]), at_ties=1.0)


def _branches_in_place(a: State, b: State) -> State:
    """Scale the lower state only, into an array of its own."""
    low, high = (a, b) if a[0] <= b[0] else (b, a)
    corr = np.exp(low[0] - high[0]) if low[1] else 0.0
    acc = low[2] * corr
    acc += high[2]
    return np.float64(high[0]), np.float64(low[1] * corr + high[1]), acc


def _float32(a: State, b: State) -> State:
    a, b = (tuple(map(np.float32, state)) for state in (a, b))
    return _list(a, b)


MERGE_WRONG = {
    "drops_one_at_equal_maxima": _drops_one_at_equal_maxima,
    "halves_at_equal_maxima": _halves_at_equal_maxima,
}
MERGE_RIGHT = {
    "a_list": _list,
    "scales_one_state": _branches_in_place,
    "in_float32": _float32,
}


def _lookup_with_a_constant(n: int) -> float:
    known = {j: float(sum(Fraction(1, i) for i in range(1, j + 1))) for j in range(8)}
    return known.get(n, 6.81)


def _log_and_a_constant(n: int) -> float:
    return 1.0 if n == 1 else np.log(n) + 0.5772


RISES_WRONG = {
    "half_the_keys": lambda n: (n + 1) / 2,
    "log_base_e": lambda n: 1 + np.log(n),
    "log_base_2": lambda n: 1 + np.log2(n) / 2,
    "without_first": lambda n: sum(1 / j for j in range(2, n + 1)),
    "lookup_with_a_constant": _lookup_with_a_constant,
    "log_and_a_constant": _log_and_a_constant,
}
RISES_RIGHT = {
    "fractions": lambda n: sum(Fraction(1, j) for j in range(1, n + 1)),
    "an_array": lambda n: (1 / np.arange(1, n + 1)).sum(),
    "in_float32": lambda n: (1 / np.arange(1, n + 1, dtype=np.float32)).sum(),
}
