"""What a problem holds once it is validated."""

import math

import ml_dtypes
import numpy as np
import pytest

from flashlib.errors import ArgumentError
from flashlib.problem import attention_problem
from flashlib.testing import make_qkv


def problem(seq_q=3, seq_k=5, **options):
    return attention_problem(*make_qkv(seq_q, seq_k), **options)[0]


def test_sizes_and_defaults():
    it = attention_problem(*make_qkv(3, 5, n_heads=6, n_kv_heads=2, head_dim_v=7))[0]
    assert (it.seq_q, it.seq_k, it.n_heads, it.n_kv_heads) == (3, 5, 6, 2)
    assert (it.head_dim, it.head_dim_v, it.group, it.offset) == (8, 7, 3, 2)
    assert (it.left, it.right, it.softcap, it.mask, it.bias, it.sink) == (None,) * 6
    assert it.scale == 1 / math.sqrt(8)
    assert it.sinks[0] == -np.inf and it.mask is None and it.bias is None


def test_it_cannot_be_changed():
    with pytest.raises(AttributeError):
        problem().scale = 2.0


@pytest.mark.parametrize(
    ("causal", "window", "band"),
    [
        (False, None, (None, None)),
        (True, None, (None, 0)),
        (False, 1, (0, 0)),
        (True, np.int64(4), (3, 0)),
        (False, (2, 1), (2, 1)),
        (True, (2, 1), (2, 0)),
        (False, [None, 3], (None, 3)),
        (True, (None, 3), (None, 0)),
        (np.True_, (5, None), (5, 0)),
    ],
)
def test_band(causal, window, band):
    it = problem(causal=causal, window=window)
    assert (it.left, it.right) == band


@pytest.mark.parametrize(("seq_q", "seq_k"), [(4, 4), (2, 5), (5, 2), (3, 0), (1, 1)])
@pytest.mark.parametrize("window", [None, 1, 2, (1, 1), (0, None), (None, 2), 10**30])
@pytest.mark.parametrize("causal", [False, True])
def test_kv_range_is_the_definition(seq_q, seq_k, window, causal):
    it = problem(seq_q, seq_k, causal=causal, window=window)
    for i in range(seq_q):
        p = i + seq_k - seq_q
        seen = {
            j
            for j in range(seq_k)
            if (it.left is None or j >= p - it.left)
            and (it.right is None or j <= p + it.right)
        }
        lo, hi = it.kv_range(i)
        assert 0 <= lo <= hi <= seq_k
        assert seen == set(range(lo, hi))


@pytest.mark.parametrize(
    ("dtype", "work"),
    [
        (np.float32, np.float32),
        (np.float64, np.float64),
        (np.float16, np.float32),
        (ml_dtypes.bfloat16, np.float32),
    ],
)
def test_work_type(dtype, work):
    it, tensors = attention_problem(*make_qkv(2, dtype=dtype))
    assert (it.dtype, it.work) == (np.dtype(dtype), np.dtype(work))
    assert all(tensor.dtype == work for tensor in tensors)


def test_tensors_are_not_copied_without_need():
    q, k, v = make_qkv(2)
    _, tensors = attention_problem(q[:, ::2], k[:, ::2], v[:, ::2])
    assert np.shares_memory(tensors[0], q) and np.shares_memory(tensors[2], v)


def test_array_likes_are_taken():
    rows = [[[0.5]], [[1.5]]]
    it, tensors = attention_problem(rows, rows, rows)
    assert it.dtype == np.float64 and tensors[0].shape == (2, 1, 1)


def test_data_keeps_broadcast_axes_at_one():
    it = problem(mask=np.ones(5, bool), bias=np.zeros((3, 1)))
    assert it.mask.shape == (1, 1, 5) and it.bias.shape == (1, 3, 1)
    assert it.bias.dtype == np.float32
    stretched = np.broadcast_to(np.ones((1, 5), bool), (4, 3, 5))
    assert problem(mask=stretched).mask.shape == (1, 1, 5)


def test_a_finite_bias_stays_finite_in_float32():
    it = problem(bias=np.array([[-1e300, 1e300, -np.inf, np.nan, 1.0]]))
    limit = np.finfo(np.float32).max
    np.testing.assert_array_equal(it.bias[0, 0], [-limit, limit, -np.inf, np.nan, 1])


def test_sink_in_the_work_type():
    it = problem(sink=[0.5, -np.inf, 0.0, -1e38])
    assert it.sink.dtype == np.float32
    np.testing.assert_array_equal(it.sink, np.float32([0.5, -np.inf, 0, -1e38]))
    assert it.sinks[0] == np.float32(0.5)
    # In float32 it would be -inf, and -inf means that there is no sink.
    with pytest.raises(ArgumentError, match="sink has -1e\\+39 for head 3"):
        problem(sink=[0.5, -np.inf, 0.0, -1e39])


def test_over_keys_moves_the_positions():
    it = problem(2, 8, causal=True).over_keys(3)
    assert (it.seq_k, it.offset, it.kv_range(0), it.kv_range(1)) == (
        3,
        1,
        (0, 2),
        (0, 3),
    )


def test_zero_sizes():
    for seq_q, seq_k in ((0, 3), (3, 0), (0, 0)):
        assert problem(seq_q, seq_k).reach == (seq_q + seq_k,) * 2
    x = np.zeros((3, 0, 4))
    it, _ = attention_problem(x, x, x)
    assert it.group == 0
    narrow = np.zeros((3, 2, 0))
    assert attention_problem(narrow, narrow, narrow)[0].scale == 1.0
