"""Parts of a row of keys: how it is cut, and what their states merge to."""

from typing import NamedTuple

import numpy as np
import pytest
from kernels.compiled import compiled

from flashlib.chains import CHAIN, STRETCH
from flashlib.kernels.parts import PART, Partial, list_parts, merge_parts

ALL = 10**9


class Bounds(NamedTuple):
    """As much of the scratch of a thread as a merge looks at."""

    lo: np.ndarray
    hi: np.ndarray


@compiled
def parts_of(lengths, seq_new, left, num_splits):
    return list_parts(lengths, seq_new, left, num_splits)


@compiled
def merge(partial, scratch, first_at, stride, n_parts, sink, kv_head, group, out, lse):
    merge_parts(
        partial, scratch, first_at, stride, n_parts, sink, kv_head, group, out, lse
    )


def counts(lengths, left=ALL, num_splits=0, seq_new=1):
    """Return the parts of every sequence, after a look at how they lie together."""
    parts = parts_of(np.array(lengths), seq_new, left, num_splits)
    assert parts[:, 0].tolist() == sorted(parts[:, 0])
    found = []
    for b, length in enumerate(lengths):
        own = parts[parts[:, 0] == b]
        seen = [j for _, start, stop, _, _ in own for j in range(start, stop)]
        assert seen == list(range(max(length - seq_new - left, 0), length))
        sizes = own[:, 2] - own[:, 1]
        assert sizes.max() - sizes.min() <= 1 and sizes.max() <= STRETCH
        assert own[:, 3].tolist() == list(range(len(own)))
        assert (own[:, 4] == len(own)).all()
        found.append(len(own))
    return found


def test_rows_are_cut_into_parts_of_a_usual_length():
    lengths = [1, PART, PART + 1, 5 * PART, CHAIN * PART + 1]
    assert counts(lengths) == [1, 1, 2, 5, CHAIN]


def test_a_wish_is_granted_within_what_there_is():
    lengths = [1, 7, 1000, STRETCH, STRETCH + 1, 3 * STRETCH]
    assert counts(lengths, num_splits=2) == [1, 2, 2, 2, 2, 3]
    assert counts([1, 7, 1000], num_splits=10) == [1, 7, 10]


def test_keys_before_the_window_belong_to_no_part():
    # two new rows, a window of 9 before each: 11 keys are seen
    assert counts([5, 11, 12, 500], left=9, num_splits=4, seq_new=2) == [4, 4, 4, 4]


GROUP, N_NEW, HEAD_DIM_V, KV_HEAD = 3, 2, 5, 1
N_LANES = GROUP * N_NEW


def states(scores, values, cuts):
    """Return the states of all parts of one KV head, among those of another one."""
    found = [np.full((len(cuts), 2, N_LANES), 9.0) for _ in range(3)]
    acc = np.full((len(cuts), 2, N_LANES, HEAD_DIM_V), 9.0)
    for n, (start, stop) in enumerate(cuts):
        s = scores[:, start:stop]
        m = s.max(axis=1, initial=-np.inf)
        p = np.exp(s - np.where(m > -np.inf, m, 0)[:, None])
        acc[n, KV_HEAD] = p @ values[start:stop]
        for array, state in zip(found, (m, p.sum(axis=1), 0), strict=True):
            array[n, KV_HEAD] = state
    return Partial(*(x.ravel() for x in (*found, acc)))


def merged(scores, cuts, sink, attends=True):
    """Merge parts of given scores; return what came out, and what should have."""
    values = np.random.default_rng(2).standard_normal((scores.shape[1], HEAD_DIM_V))
    partial = states(scores, values, cuts)
    hi = np.full(N_LANES, scores.shape[1] if attends else 0)
    n_heads = 2 * GROUP
    out = np.full((N_NEW, n_heads, HEAD_DIM_V), 7.0)
    lse = np.full((N_NEW, n_heads), 7.0)
    first_at, stride = KV_HEAD * N_LANES, 2 * N_LANES
    scratch = Bounds(np.zeros(N_LANES, np.int64), hi)
    merge(
        partial, scratch, first_at, stride, len(cuts), sink, KV_HEAD,
        GROUP, out, lse,
    )  # fmt: skip
    other = np.arange(n_heads) < GROUP  # the heads of the other KV head
    assert (out[:, other] == 7).all() and (lse[:, other] == 7).all()
    heads = KV_HEAD * GROUP + np.arange(N_LANES) % GROUP
    with np.errstate(all="ignore"):
        weights = np.exp(np.hstack([scores, sink[heads, None]]))
        total = weights.sum(axis=1)
        want = weights[:, :-1] @ values / total[:, None], np.log(total)
    found = out[:, ~other].reshape(N_LANES, HEAD_DIM_V), lse[:, ~other].ravel()
    return found, want


NONE = np.full(2 * GROUP, -np.inf)
SCORES = np.random.default_rng(1).integers(-50, 50, (N_LANES, 11)) / 8
CUTS = ((0, 4), (4, 5), (5, 5), (5, 11))


@pytest.mark.parametrize("cuts", [CUTS[:1], CUTS, CUTS[::-1], ((0, 0), *CUTS)])
def test_parts_merge_to_the_softmax_of_all_their_keys(cuts):
    scores = SCORES[:, : max(stop for _, stop in cuts)]
    for sink in (NONE, np.array([0, 1, -np.inf, 2, -1, -np.inf])):
        found, want = merged(scores, cuts, sink)
        for one, other in zip(found, want, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-14, rtol=1e-14)


def test_a_lane_that_sees_nothing_in_one_part_has_the_others():
    scores = SCORES.copy()
    scores[0, :4] = scores[1, 5:] = -np.inf
    found, want = merged(scores, CUTS, NONE)
    for one, other in zip(found, want, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-14)


def test_without_weight_a_lane_is_nothing_or_0_by_0():
    scores = np.full((N_LANES, 11), -np.inf)
    for attends in (True, False):
        (out, lse), _ = merged(scores, CUTS, NONE, attends)
        assert (lse == -np.inf).all()
        assert np.isnan(out).all() if attends else (out == 0).all()


def test_small_sums_of_many_parts_are_not_lost():
    """Each is too small for the sum of the first part, not so all together."""
    n_parts, tiny = 1025, np.finfo(np.float64).eps / 4
    sums = np.full((n_parts, 1), tiny)
    sums[0] = 1
    zeros = np.zeros(n_parts)
    partial = Partial(zeros, sums.ravel(), zeros, zeros)
    scratch = Bounds(np.zeros(1, np.int64), np.ones(1, np.int64))
    out, lse = np.empty((1, 1, 1)), np.empty((1, 1))
    merge(partial, scratch, 0, 1, n_parts, np.array([-np.inf]), 0, 1, out, lse)
    np.testing.assert_allclose(lse, np.log1p(1024 * tiny), rtol=1e-5)
