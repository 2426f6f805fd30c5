"""Checks of the rounding error, in units and as the source states it (book)."""

from functools import cache

import numpy as np

from flashlib.contract.agree import draw
from flashlib.contract.check import Topic
from flashlib.contract.dense import dense
from flashlib.testing import lse_allowed, out_allowed, published_qkv, unit

topic = Topic("accuracy")


@cache
def _case(gain: float):
    """Draw one call; return it with its right answer and its bounds on both errors."""
    q, k, v = draw(3, 200, n_heads=2, head_dim=16, seed=26, gain=gain)
    exact = dense(q, k, v)
    plain = dense(q, k, v, dtype=np.float32)
    out_gap, lse_gap = (np.abs(a - b).max() for a, b in zip(plain, exact, strict=True))
    bounds = out_allowed(out_gap, unit(q, k, v)), lse_allowed(exact.lse, lse_gap)
    return (q, k, v), exact, bounds


def _within_bound(attention, gain):
    call, exact, (bound, lse_bounds) = _case(gain)
    got = attention(*call)
    error = np.abs(got.out - exact.out).max()
    assert error <= bound, (
        f"out has an error of {error:.3g}; expected at most {bound:.3g}"
    )
    errors = np.abs(got.lse - exact.lse)
    at = np.unravel_index(np.argmax(errors / lse_bounds), errors.shape)
    assert errors[at] <= lse_bounds[at], (
        f"lse has an error of {errors[at]:.3g}; expected at most {lse_bounds[at]:.3g}"
    )


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


@cache
def _long_case(spread: float):
    """Draw a long row of positive values, which no sum of errors can hide in."""
    n = 20_000 if spread else 4096
    random = np.random.default_rng(28)
    scores = np.full((n, 1, 1), -spread, np.float32)
    scores[0] = 0
    v = random.uniform(1, 2, (n, 1, 3)).astype(np.float32)
    p = np.exp(scores[:, 0, 0].astype(np.float64))
    out, lse = p @ v[:, 0].astype(np.float64) / p.sum(), np.log(p.sum())
    narrow = p.astype(np.float32)
    plain = np.abs((narrow / narrow.sum()) @ v[:, 0] - out).max()
    return scores, v, out, lse, plain


@topic.check("The same bound holds for long rows of positive values.")
def error_when_long(attention):
    q = np.ones((1, 1, 1), np.float32)
    for spread in (0.0, 0.7):
        scores, v, out, lse, plain = _long_case(spread)
        got = attention(q, scores, v, scale=1.0)
        bound = out_allowed(plain, 2.0**-23 * np.abs(v).max())
        error = np.abs(got.out[0, 0] - out).max()
        n = len(v)
        assert error <= bound, (
            f"out has an error of {error:.3g} at {n} keys; expected at most {bound:.3g}"
        )
        error, bound = abs(got.lse.item() - lse), lse_allowed(lse, 0.0)
        assert error <= bound, (
            f"lse has an error of {error:.3g} at {n} keys; expected at most {bound:.3g}"
        )


@topic.check("The published check: lengths 1, 17, 100, causal, outputs within 1e-4.")
def published(attention):
    for index, seq in enumerate((1, 17, 100)):
        call, reference = _published(index, seq)
        error = np.abs(attention(*call, causal=True).out - reference).max()
        assert error < 1e-4, (
            f"out has an error of {error:.3g} at {seq} tokens; expected less than 1e-4"
        )
