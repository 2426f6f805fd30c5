"""More answers to the exercises on the weighted mean (chapter 1)."""

import numpy as np

from flashlib.row import SCORES

SIX_WEIGHTS_WRONG = {
    "one weight negative": [0.01, 0.09, 0.03, 0.63, 0.23, -0.001],
    "in words": ["0.01", "0.09", "0.03", "0.63", "0.23", "0.00"],
}
SIX_WEIGHTS_RIGHT = {
    "an array": np.array([0.01, 0.09, 0.03, 0.63, 0.23, 0.0]),
    "full precision": tuple(np.exp(SCORES) / 233.889),
}


def _without_scale_in_place(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    k *= q
    terms = np.exp(k.sum(axis=1))
    return terms @ v / terms.sum()


def _in_place(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    q /= np.sqrt(q.size)
    scores = k @ q
    terms = np.exp(scores, out=scores)
    v *= terms[:, None]
    return v.sum(axis=0) / terms.sum()


def _key_by_key(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> list[float]:
    terms = [np.exp(sum(a * b for a, b in zip(q, key, strict=True))) for key in k]
    terms = [term ** (len(q) ** -0.5) for term in terms]
    weights = [term / sum(terms) for term in terms]
    return [sum(w * x for w, x in zip(weights, column, strict=True)) for column in v.T]


ATTEND_WRONG = {"in place and without scale": _without_scale_in_place}
ATTEND_RIGHT = {"in place": _in_place, "lists and loops": _key_by_key}
