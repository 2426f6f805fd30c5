"""Finding, clearing and adding what is not finite, number by number."""

import numpy as np
import pytest
from kernels.compiled import compiled

from flashlib.kernels.nonfinite import add_nonfinite, all_finite, clear_nonfinite


@compiled
def finite(row):
    return all_finite(row)


@compiled
def clear(row):
    clear_nonfinite(row)


@compiled
def add(acc, at, step, p, row):
    add_nonfinite(acc, at, step, p, row)


JUNK = pytest.mark.parametrize("junk", [np.nan, np.inf, -np.inf])
DTYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64])


@DTYPES
@JUNK
@pytest.mark.parametrize("width", [1, 3, 8, 33])
def test_one_number_is_found_and_cleared_wherever_it_stands(dtype, junk, width):
    usual = np.linspace(-1, 1, width).astype(dtype)
    for place in range(width):
        row = usual.copy()
        row[place] = junk
        assert not finite(row)
        clear(row)
        assert finite(row) and row[place] == 0
        np.testing.assert_array_equal(np.delete(row, place), np.delete(usual, place))


@DTYPES
def test_the_largest_and_smallest_numbers_are_finite(dtype):
    limits = np.finfo(dtype)
    row = np.array([limits.max, -limits.max, limits.smallest_subnormal, -0.0], dtype)
    kept = row.copy()
    assert finite(row) and finite(row[:0])
    clear(row)
    assert row.tobytes() == kept.tobytes()


@DTYPES
@JUNK
def test_only_what_is_not_finite_is_added(dtype, junk):
    row, acc = np.array([5, junk, 7], dtype), np.ones(9, dtype)
    add(acc, 1, 3, dtype(0.5), row)
    want = np.ones(9, dtype)
    want[4] = junk
    np.testing.assert_array_equal(acc, want)
    add(acc, 1, 3, dtype(0), row)
    assert np.isnan(acc[4]) and np.delete(acc, 4).tolist() == [1] * 8
