"""The keys of one query in parts: how they are cut, and that they merge."""

import numpy as np
import pytest

from flashlib.backends import splits
from flashlib.backends.splits import attend_in_parts, cut
from flashlib.chains import STRETCH
from flashlib.problem import attention_problem
from flashlib.testing import make_qkv, oracle


@pytest.mark.parametrize("first, n", [(0, 1), (0, 7), (5, 12), (3, 64)])
def test_parts_follow_one_another_and_differ_by_one_key_at_most(first, n):
    for num_splits in (1, 2, 3, n):
        parts = cut(range(first, first + n), num_splits)
        assert len(parts) == num_splits
        assert [j for part in parts for j in part] == list(range(first, first + n))
        assert max(map(len, parts)) - min(map(len, parts)) <= 1


@pytest.mark.parametrize("num_splits", [1, 2, 3, 11, 13, 50])
@pytest.mark.parametrize("tile", [1, 4, 64])
def test_parts_merge_to_the_whole(num_splits, tile):
    random = np.random.default_rng(num_splits)
    q, k, v = make_qkv(3, 13, n_heads=4, n_kv_heads=2, head_dim=5, dtype=np.float64)
    mask = np.ones((4, 3, 13), bool)
    mask[0, 0, 4:9] = False  # parts without a key
    mask[1, 2] = False  # and a row without any
    for options in (
        {},
        {"causal": True, "window": 4},
        {"mask": mask},
        {"sink": random.standard_normal(4), "bias": random.standard_normal((3, 13))},
    ):
        problem, tensors = attention_problem(q, k, v, **options)
        found = attend_in_parts(problem, *tensors, num_splits, tile)
        want = oracle(q, k, v, **options)
        np.testing.assert_allclose(found.out, want.out, atol=1e-14)
        np.testing.assert_allclose(found.lse, want.lse, atol=1e-14)


@pytest.mark.parametrize(
    "seq_k, num_splits, parts",
    [
        (1, 5, 1),
        (10, 20, 10),
        (10, 0, 1),
        (STRETCH, 1, 1),
        (STRETCH + 1, 1, 2),
        (STRETCH + 1, 5, 5),
    ],
)
def test_no_part_is_empty_or_longer_than_a_stretch(
    monkeypatch, seq_k, num_splits, parts
):
    found = []
    monkeypatch.setattr(
        splits, "cut", lambda *given: found.append(given) or cut(*given)
    )
    q, k, v = make_qkv(1, seq_k, n_heads=1, n_kv_heads=1, head_dim=1)
    problem, tensors = attention_problem(q, k, v)
    attend_in_parts(problem, *tensors, num_splits, 4096)
    assert found == [(range(seq_k), parts)]


@pytest.mark.parametrize("num_splits", [1, 5])
def test_a_row_that_attended_early_is_remembered(num_splits):
    """Its only score is -inf: 0 / 0, and not the 0 of a row without keys."""
    q, k = np.ones((2, 1, 1)), np.full((5, 1, 1), -np.inf)
    mask = np.zeros((1, 2, 5), bool)
    mask[0, 0, 0] = True
    problem, tensors = attention_problem(q, k, np.ones_like(k), mask=mask)
    out, lse = attend_in_parts(problem, *tensors, num_splits, 1)
    assert np.isnan(out[0, 0, 0]) and out[1, 0, 0] == 0
    assert (lse == -np.inf).all()
