"""More answers to the exercises on bars and tests (chapter 8)."""

from collections.abc import Callable

import numpy as np

from flashlib.reference import materialized_attention
from flashlib.testing import make_qkv, oracle


def _hot(attention: Callable, largest_at: int) -> bool:
    """Ask for three scores near 100, the largest at one place."""
    s = np.float32([98, 99, 98])
    s[largest_at] = 100
    k, v = s.reshape(3, 1, 1), np.float32([1, 2, 4]).reshape(3, 1, 1)
    got = attention(np.ones((1, 1, 1), np.float32), k, v, scale=1.0).out.item()
    terms = np.exp(s - 100.0)
    return abs(got - float(terms @ v[:, 0, 0] / terms.sum())) < 1e-5


def _only_lse(attention: Callable) -> bool:
    """Look whether the other result is finite, on scores that are hot."""
    q, k, v = make_qkv(65, heat=40)
    return bool(np.isfinite(attention(q, k, v).lse).all())


def _some_hot_rows(attention: Callable) -> bool:
    """Ask for random scores in the hundreds and hold them against float64."""
    q, k, v = make_qkv(8, 200, n_heads=2, n_kv_heads=2, head_dim=16, seed=3)
    q *= np.float32(150)
    gap = np.abs(attention(q, k, v).out - oracle(q, k, v).out).max()
    return np.bool_(gap < 5e-4)


NO_MAX_WRONG = {
    "only_lse": _only_lse,
    "one_hot_score": lambda attention: _hot(attention, 0),
    "a_number_for_a_bool": lambda attention: 1,
}
NO_MAX_RIGHT = {"some_hot_rows": _some_hot_rows}


def _scores_times_eps(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> float:
    """Forget the sizes of the values, and count what scores lose."""
    return np.finfo(np.float32).eps * np.abs(np.einsum("ihd,jhd->hij", q, k)).max()


def _half_of_one_row(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> float:
    """Measure one row of one head, and allow half of what it loses."""
    exact = oracle(q[:1, :1], k[:, :1], v[:, :1]).out
    plain = materialized_attention(q[:1, :1], k[:, :1], v[:, :1]).out
    return np.abs(plain - exact).max() / 2


def _from_the_scores(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Bound the loss of a score in float32, carried to the output."""
    scores = np.abs(np.einsum("ihd,jd->hij", q, k[:, 0])).max() * q.shape[2] ** -0.5
    unit = np.finfo(np.float32).eps * np.abs(v).max()
    return unit * (1 + scores)


BAR_WRONG = {"scores_times_eps": _scores_times_eps, "half_of_one_row": _half_of_one_row}
BAR_RIGHT = {"from_the_scores": _from_the_scores}
