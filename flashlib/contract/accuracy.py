"""Checks of the rounding error, in units and as the source states it (book)."""

from __future__ import annotations

from functools import cache

import numpy as np

from flashlib.testing import published_qkv

from .agree import draw
from .check import Topic
from .dense import dense

topic = Topic("accuracy")
EPS = float(np.finfo(np.float32).eps)


@cache
def _case(heat: float):
    """Draw one call; return it with its right answer and its bounds on both errors."""
    q, k, v = draw(3, 200, n_heads=2, head_dim=16, seed=26, heat=heat)
    exact = dense(q, k, v)
    plain = np.abs(dense(q, k, v, dtype=np.float32).out - exact.out).max()
    return (q, k, v), exact, 2 * plain + EPS * np.abs(v).max()


def _within_bound(attention, heat):
    call, exact, bound = _case(heat)
    got = attention(*call)
    error = np.abs(got.out - exact.out).max()
    assert error <= bound, f"error of out is {error:.3g}; expected at most {bound:.3g}"
    error = np.abs(got.lse - exact.lse) - 1e-6 * np.abs(exact.lse)
    assert error.max() <= 4e-6, f"error of lse is {error.max():.3g}; expected 4e-6"


@topic.check("The error is at most twice that of plain float32, plus one unit.")
def error_in_units(attention):
    _within_bound(attention, 1.0)


@topic.check("The same bound holds for hot scores.")
def error_when_hot(attention):
    _within_bound(attention, 12.0)


@cache
def _published(index: int, seq: int):
    """Return one call of the published check, with the reference beside it."""
    call = published_qkv(seq, index)
    return call, dense(*call, dtype=np.float32, causal=True).out


@topic.check("The published check: lengths 1, 17, 100, causal, outputs within 1e-4.")
def published(attention):
    for index, seq in enumerate((1, 17, 100)):
        call, reference = _published(index, seq)
        error = np.abs(attention(*call, causal=True).out - reference).max()
        assert error < 1e-4, f"error is {error:.3g} at {seq} tokens; expected 1e-4"
