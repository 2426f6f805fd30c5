"""The product in plain loops against NumPy, in both orders of the left operand."""

import numpy as np
import pytest
from kernels.compiled import compiled, small_integers

from flashlib.kernels.lane_product import LANES, multiply


@compiled
def product(left, by_row, by_depth, right, out):
    multiply(left, by_row, by_depth, right, out)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rows", [4, 8, 20])
@pytest.mark.parametrize("depth", [4, 12])
def test_rows_and_columns_give_the_same_product(dtype, rows, depth):
    left = small_integers(rows, rows, depth, dtype=dtype)
    right = small_integers(depth, depth, LANES, dtype=dtype)
    for flat, by_row, by_depth in (
        (left.ravel(), depth, 1),
        (left.T.ravel(), 1, rows),
    ):
        out = np.full((rows, LANES), np.nan, dtype)  # what was there is not added to
        product(flat, by_row, by_depth, right, out)
        np.testing.assert_array_equal(out, left @ right)


def test_a_wider_left_operand_is_used_as_far_as_the_result_goes():
    left, right = small_integers(1, 8, 12), small_integers(2, 8, LANES)
    out = np.empty((4, LANES), np.float32)
    product(left.ravel(), 12, 1, right, out)
    np.testing.assert_array_equal(out, left[:4, :8] @ right)
