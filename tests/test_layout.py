"""Views of heads: the same memory, or a refusal."""

import numpy as np
import pytest

from flashlib import ShapeError, merge_heads, split_heads
from flashlib.layout import repeat_kv

X = np.arange(2 * 3 * 4 * 5, dtype=np.float32).reshape(2, 3, 20)


def test_split_is_a_view_with_the_right_stripes():
    heads = split_heads(X, 4)
    assert heads.shape == (2, 3, 4, 5) and np.shares_memory(heads, X)
    for h in range(4):
        np.testing.assert_array_equal(heads[..., h, :], X[..., 5 * h : 5 * h + 5])


@pytest.mark.parametrize(
    "x",
    [X, X[:, ::2], X[::-1], X[..., ::2], X[..., ::-1], np.asfortranarray(X), X[:0]],
    ids=("c", "rows", "reversed", "columns", "mirrored", "fortran", "empty"),
)
@pytest.mark.parametrize("n_heads", (1, 2, 5, 10))
def test_split_of_any_strides_is_a_view(x, n_heads):
    heads = split_heads(x, n_heads)
    want = np.ascontiguousarray(x).reshape(*x.shape[:-1], n_heads, -1) if x.size else x
    assert not x.size or np.shares_memory(heads, x)
    np.testing.assert_array_equal(heads.ravel(), want.ravel())
    np.testing.assert_array_equal(merge_heads(heads), x)


def test_writing_through():
    x = np.zeros((2, 6))
    split_heads(x, 3)[1, 2, 0] = 7
    assert x[1, 4] == 7
    merge_heads(x.reshape(2, 3, 2))[0, 5] = 9
    assert x[0, 5] == 9


def test_read_only_stays_read_only():
    x = np.zeros((2, 6))
    x.flags.writeable = False
    heads = split_heads(x, 3)
    assert not heads.flags.writeable and not merge_heads(heads).flags.writeable


def test_merge_of_one_column_or_one_head():
    x = np.arange(12.0).reshape(2, 6, 1)
    np.testing.assert_array_equal(merge_heads(x[:, ::2]), x[:, ::2, 0])
    y = np.arange(12.0).reshape(2, 1, 6)
    np.testing.assert_array_equal(merge_heads(y[..., ::3]), y[:, 0, ::3])


def test_merge_never_copies():
    with pytest.raises(ShapeError):
        merge_heads(np.zeros((3, 4, 8))[:, ::2])


def test_repeat_is_in_repeat_order():
    k = np.arange(6.0).reshape(1, 3, 2)
    assert repeat_kv(k, 2)[0, :, 0].tolist() == [0, 0, 2, 2, 4, 4]


@pytest.mark.parametrize("function", [lambda x: split_heads(x, 2), merge_heads])
def test_rows_of_different_lengths_are_refused(function):
    with pytest.raises(ShapeError, match="x "):
        function([[1], [1, 2]])
