"""Products in small blocks: the same numbers, and cuts that nothing moves."""

import numpy as np
import pytest

from flashlib.products import COLUMNS, DEPTH, ROWS, product


def numbers(*shape, dtype=np.float32):
    """Return whole numbers, whose products and sums are exact."""
    random = np.random.default_rng(sum(shape))
    return random.integers(-4, 5, shape).astype(dtype)


def normal(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape, np.float32)


@pytest.mark.parametrize("n", [0, 1, ROWS - 1, ROWS, ROWS + 1, 2 * ROWS, 2 * ROWS + 5])
@pytest.mark.parametrize("depth", [0, 1, DEPTH, DEPTH + 1, 2 * DEPTH + 3])
@pytest.mark.parametrize("width", [0, 1, COLUMNS, COLUMNS + 1, 2 * COLUMNS + 7])
def test_blocks_with_remainders_make_the_whole_product(n, depth, width):
    a, b = numbers(n, depth), numbers(depth, width)
    found = product(a, b)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, a @ b)


def test_strided_operands_and_both_types_are_multiplied():
    for dtype in (np.float32, np.float64):
        a, b = numbers(140, 70, dtype=dtype)[::2], numbers(150, 140, dtype=dtype).T
        found = product(a[:, ::-1], b[::2])
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, a[:, ::-1] @ b[::2])


def test_a_block_has_the_same_bits_whatever_stands_beside_it():
    a, b = normal(2 * ROWS + 5, 300), normal(300, 2 * COLUMNS + 7)
    whole = product(a, b)
    for i in range(0, len(a), ROWS):
        rows = slice(i, i + ROWS)
        np.testing.assert_array_equal(product(a[rows], b), whole[rows])
    for c in range(0, b.shape[1], COLUMNS):
        some = slice(c, c + COLUMNS)
        np.testing.assert_array_equal(product(a, b[:, some]), whole[:, some])


def test_a_long_sum_is_made_of_short_ones():
    a, b = normal(3, 2 * DEPTH + 9), normal(2 * DEPTH + 9, 5)
    total = product(a[:, :DEPTH], b[:DEPTH])
    for d in (DEPTH, 2 * DEPTH):
        total += product(a[:, d : d + DEPTH], b[d : d + DEPTH])
    np.testing.assert_array_equal(product(a, b), total)


def test_no_product_is_large_enough_for_threads():
    """What the library is asked for stays below the sizes that it shares out."""
    asked = []

    class Watched(np.ndarray):
        def __array_ufunc__(self, ufunc, method, *inputs, out=None, **options):
            plain = [x.view(np.ndarray) for x in inputs]
            if ufunc is np.matmul:
                asked.append((plain[0].shape[-2], *plain[1].shape[-2:]))
            if out is not None:
                options["out"] = tuple(x.view(np.ndarray) for x in out)
            return getattr(ufunc, method)(*plain, **options)

    a, b = normal(100, 300).view(Watched), normal(300, 200).view(Watched)
    product(a, b)
    rows, depth, columns = np.array(asked).max(axis=0)
    assert rows <= ROWS and depth <= DEPTH and columns <= COLUMNS
    assert rows * depth * columns <= 64**3
    assert depth * columns <= 9216
    # whole blocks of rows in one call, what is left of them in another
    assert len(asked) == 2 * 3 * 4
