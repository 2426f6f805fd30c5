"""The algebra of (m, l, acc), and merging of finished results."""

import itertools

import numpy as np
import pytest

from flashlib import AttentionOutput, merge_states
from flashlib.online_softmax import OnlineSoftmax, walk, weighted_sum

ROW = np.array([1.0, 3.0, 2.0, 5.0, 4.0, 0.0])
VALUES = np.arange(12.0).reshape(6, 2)
INF, NAN = np.inf, np.nan


def exact(scores=ROW, values=VALUES):
    p = np.exp(scores - scores.max())
    return p @ values / p.sum(), scores.max() + np.log(p.sum())


def state(scores, values, dtype=np.float64):
    start = OnlineSoftmax.identity(values.shape[1], dtype)
    return start.update(np.asarray(scores, dtype), np.asarray(values, dtype))


@pytest.mark.parametrize("tile", range(1, 8))
def test_every_tile_size_gives_the_softmax(tile):
    out, lse = exact()
    *_, last = walk(ROW, VALUES, tile)
    np.testing.assert_allclose(last.after.out, out, rtol=1e-14)
    np.testing.assert_allclose(last.after.lse, lse, rtol=1e-14)


def test_walk_tells_each_step():
    first, second, third = walk(ROW, VALUES, 2)
    assert (first.start, first.stop, first.m_tile) == (0, 2, 3.0)
    assert [float(x.after.m) for x in (first, second, third)] == [3, 5, 5]
    assert [x.rescaled for x in (first, second, third)] == [False, True, False]
    # -inf becomes 3: there is nothing to repair, and the factor says so.
    assert first.corr == 0
    np.testing.assert_allclose(second.corr, np.exp(-2))
    assert third.corr == 1
    np.testing.assert_allclose(third.p, np.exp([-1, -5]))
    assert second.before is first.after and third.before is second.after


def test_corrections_never_exceed_one():
    random = np.random.default_rng(0)
    for _ in range(50):
        scores = 40 * random.standard_normal(20)
        for step in walk(scores, np.ones((20, 1)), int(random.integers(1, 6))):
            assert 0 <= step.corr <= 1 and (step.p <= 1).all()


def test_merge_is_a_monoid():
    parts = [state(ROW[a : a + 2], VALUES[a : a + 2]) for a in (0, 2, 4)]
    nothing = OnlineSoftmax.identity(2)
    want = exact()
    for a, b, c in itertools.permutations(parts):
        for whole in (
            a.merge(b).merge(c),
            a.merge(b.merge(c)),
            nothing.merge(a).merge(b.merge(nothing)).merge(c),
        ):
            np.testing.assert_allclose(whole.out, want[0], rtol=1e-14)
            np.testing.assert_allclose(whole.lse, want[1], rtol=1e-14)


def test_identity_with_identity_is_no_nan():
    nothing = OnlineSoftmax.identity(3)
    both = nothing.merge(nothing)
    assert both.m == -INF and both.l == 0 and (both.acc == 0).all()
    assert both.lse == -INF and (both.out == 0).all()
    assert nothing.correction(np.float64(-INF)) == 0


def test_tiles_that_are_hidden_first_last_or_throughout():
    hidden, shown = np.array([False, False]), np.array([True, True])
    junk, junk_values = np.array([NAN, INF]), np.full((2, 2), NAN)
    nothing = OnlineSoftmax.identity(2)
    for order in itertools.permutations("hhs"):
        it = nothing
        for kind in order:
            if kind == "h":
                it = it.update(junk, junk_values, hidden)
            else:
                it = it.update(ROW[:2], VALUES[:2], shown)
        out, lse = exact(ROW[:2], VALUES[:2])
        np.testing.assert_allclose(it.out, out, rtol=1e-15)
        np.testing.assert_allclose(it.lse, lse, rtol=1e-15)
    assert nothing.update(junk, junk_values, hidden).lse == -INF


@pytest.mark.parametrize("dtype", (np.float32, np.float64))
def test_the_dtype_is_kept(dtype):
    it = OnlineSoftmax.start(2, dtype, (3,), sink=dtype(0.5))
    it = it.update(np.ones((3, 4), dtype), np.ones((4, 2), dtype))
    parts = (it.m, it.l, it.acc, it.out, it.lse, it.correction(it.m))
    assert {x.dtype for x in parts} == {np.dtype(dtype)}
    plain = state(ROW, VALUES, dtype)
    assert {x.dtype for x in (plain.m, plain.l, plain.acc, plain.lse)} == {it.m.dtype}


def test_states_are_immutable():
    it = state(ROW, VALUES)
    with pytest.raises(AttributeError):
        it.m = 0
    before = it.acc.copy()
    it.update(ROW + 9, VALUES)
    np.testing.assert_array_equal(it.acc, before)


def test_a_sink_is_a_logit_without_value():
    it = OnlineSoftmax.start(1, np.float64, (), sink=1.0)
    assert (float(it.out[0]), float(it.lse)) == (0.0, 1.0)
    it = it.update(np.zeros(2), np.ones((2, 1)))
    np.testing.assert_allclose(it.out, 2 / (2 + np.e))
    assert OnlineSoftmax.start(1, np.float64, (), sink=-INF).l == 0


def test_weights_of_hidden_values_are_not_even_zero_times_nan():
    values = np.array([[1.0, NAN], [2.0, 3.0], [INF, 4.0]])
    p = np.array([[0.0, 1.0, 0.0], [0.5, 0.5, 0.0], [0.25, 0.25, 0.5]])
    reads = p > 0
    got = weighted_sum(p, values, reads)
    np.testing.assert_array_equal(got, [[2, 3], [1.5, NAN], [INF, NAN]])
    # Attended at weight 0, a value still shows.
    np.testing.assert_array_equal(weighted_sum(p[0], values), [NAN, NAN])


def test_infinite_scores():
    assert np.isnan(state([1.0, INF], np.ones((2, 1))).out).all()
    low = state([-INF, 2.0], np.array([[5.0], [7.0]]))
    assert (low.out[0], low.lse) == (7, 2)


def pair(out, lse, dtype=np.float64):
    return AttentionOutput(np.full((2, 1, 3), out, dtype), np.full((2, 1), lse, dtype))


def test_an_empty_side_is_not_read():
    full, empty = pair(5, 1.0), pair(NAN, -INF)
    for a, b in ((full, empty), (empty, full)):
        merged = merge_states(a, b)
        np.testing.assert_array_equal(merged.out, full.out)
        np.testing.assert_array_equal(merged.lse, full.lse)


def test_two_rows_without_weight_stay_nan_and_without_keys_stay_zero():
    zero, weightless = pair(0, -INF), pair(NAN, -INF)
    assert (merge_states(zero, zero).out == 0).all()
    assert np.isnan(merge_states(zero, weightless).out).all()
    assert (merge_states(weightless, weightless).lse == -INF).all()


def test_what_an_empty_side_holds_is_not_read():
    for a in (0.0, np.inf, -np.inf, 1e30, np.float32(3e38)):
        for b in (np.inf, -np.inf, 5.0):
            sides = [
                AttentionOutput(np.full((1, 2), x, np.float32), np.float32([-np.inf]))
                for x in (a, b)
            ]
            merged = merge_states(*sides)
            assert (merged.out == 0).all() and (merged.lse == -np.inf).all()


def test_nan_shows_in_a_merge():
    assert np.isnan(merge_states(pair(NAN, 0.0), pair(1, 0.0)).out).all()
    assert np.isnan(merge_states(pair(NAN, -1e5), pair(1, 0.0)).out).all()
    both = merge_states(pair(1, NAN), pair(1, 0.0))
    assert np.isnan(both.out).all() and np.isnan(both.lse).all()


def test_merge_takes_any_leading_axes_and_plain_pairs():
    out, lse = np.ones((2, 3, 4, 5), np.float16), np.zeros((2, 3, 4), np.float32)
    merged = merge_states((out, lse), (3 * out, lse))
    assert isinstance(merged, AttentionOutput)
    assert (merged.out.dtype, merged.lse.dtype) == (np.float16, np.float32)
    assert (merged.out == 2).all()
    np.testing.assert_allclose(merged.lse, np.log(2), rtol=1e-6)
