"""Faults in exponentials, sums and merges."""

import numpy as np
import pytest
from known_faults.near import check, close

from flashlib import AttentionOutput, merge_states
from flashlib.testing import make_qkv

LN2, LN3 = 0.6931472, 1.0986123
INF, NAN = np.inf, np.nan
F = False


def test_h08_guards_survive_fast_math(way):
    """The compiler may not remove the guards on -inf and NaN.

    Seen in numba#2919, numba#6217.
    """
    q = way.col(0, 0, NAN, 0, 0)
    result = way(q, way.ones(3), way.col(3, 6, 9), causal=True, scale=1.0)
    check(result, [0, 0, NAN, 4.5, 6], [-INF, -INF, NAN, LN2, LN3])


def test_h09_nan_that_is_attended_shows(way):
    """NaN that is attended comes out; it is neither zeroed nor passed over.

    Seen in pytorch#141128.
    """
    one, two = way.col(1), way.col(1, 2)
    assert np.isnan(way(way.col(NAN), two, two).out).all()
    assert np.isnan(way(one, way.col(1, NAN), two).out).all()
    rows = way(way.col(0, NAN, 0), way.ones(3), way.col(2, 4, 6))
    check(rows, [4, NAN, 4])
    values = way(way.zeros(3), way.ones(3), way.col(2, 4, NAN), causal=True)
    check(values, [2, 3, NAN], [0, LN2, LN3])


def test_h10_softcap(way):
    """The cap is c tanh(s / c), after the scale.

    Seen in unsloth-zoo pull 593, flash-attention#1181.
    """
    four, cap = way.col(4), 2.0
    check(way(four, way.col(1), four, softcap=cap, scale=1.0), lse=[1.9280552])
    half = way(way.col(1), way.col(8), four, softcap=cap, scale=0.5)
    check(half, lse=[1.9280552])
    two = way(way.col(1), way.col(4, 0), way.col(1, 0), softcap=cap, scale=1.0)
    check(two, [0.8730339])


@pytest.mark.parametrize("dtype", (np.float32, np.float64))
def test_h14_merge_of_states(dtype):
    """Two states that saw nothing merge into one that saw nothing.

    Seen in flashinfer#4051.
    """

    def state(out, lse):
        return AttentionOutput(np.array([[[out]]], dtype), np.array([[lse]], dtype))

    empty = state(0, -INF)
    check(merge_states(empty, empty), [0], [-INF])
    check(merge_states(empty, state(5, LN3)), [5], [LN3])
    check(merge_states(state(5, LN3), empty), [5], [LN3])
    check(merge_states(state(1, 0), state(5, np.log(3))), [4], [np.log(4)])
    check(merge_states(state(2, -6e4), state(3, 6e4)), [3], [6e4])


def test_h15_sink_feeds_the_denominator_once(way):
    """A sink is counted once per row, for the right head, on every path.

    Seen in rocm-libraries#12227, modular#6198.
    """
    q, one = way.zeros(1), way.ones
    check(way(q, one(2), one(2), sink=[1.0]), [0.4238831], [1.5514447])
    check(way(q, one(3), one(3), sink=[-1.0]), [0.8907682])
    check(way(q, one(2), one(2), sink=[1.0], mask=[[F, F]]), [0], [1])


def test_h27_overflow_and_negative_scale(way):
    """The largest score is that of the scaled scores; no exponential overflows.

    Seen in e3tools pull 3.
    """

    def run(q, k, v, scale=1.0):
        return way(way.col(q), way.col(*k), way.col(*v), scale=scale).out

    close(run(1, (1000, 999), (1, 0)), [0.7310586])
    close(run(1, (-1000, -1001), (1, 0)), [0.7310586])
    close(run(1, (1, 2), (1, 3), scale=-1.0), [1.5378828])
    close(run(1, (0, 5, -3, 50), (1, 2, 3, 4)), [4])
    close(run(1, (1, 2), (1, 3), scale=0.0), [2])


def test_h31_exp_is_exact_where_it_must_be(way):
    """A fast exp keeps exp(0) = 1 and exp(-inf) = 0, and is never negative.

    Seen in modular#7068.
    """
    q, k, v = make_qkv(5, head_dim=3, dtype=way.dtype)
    expected = np.repeat(v, 2, axis=1)
    assert (way(q, k, v, window=(0, 0)).out == expected).all()
    assert (way(q, k, v, mask=np.eye(5, dtype=bool)).out == expected).all()
    two = way.ones(2)
    huge = way(way.zeros(1), two, way.col(1, 3e38), bias=[[0.0, -INF]])
    assert huge.out.item() == 1
    for low in (-100, -1e4, -3e38):
        result = way(way.col(1), way.col(0, low), way.col(0, 1), scale=1.0)
        assert 0 <= result.out.item() < 1e-30


def test_h33_rows_before_the_first_key(way):
    """1 / 0 for a row without keys neither raises nor depends on the threads.

    Seen in the error model of Numba.
    """
    q, k = np.ones((40, 4, 2), way.dtype), np.ones((3, 2, 2), way.dtype)
    result = way(q, k, k, causal=True)
    assert (result.out[:37] == 0).all() and (result.lse[:37] == -INF).all()
    close(result.out[37:], np.ones((3, 4, 2)))
