"""Access patterns: which of them visit an element twice."""

import itertools

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import flashlib
from flashlib.machine.pattern import revisits


def _elements(pattern):
    """Every element that a pattern visits, by a walk over its counters."""
    counters = itertools.product(*(range(num) for _, num in pattern))
    return [sum(s * i for (s, _), i in zip(pattern, c, strict=True)) for c in counters]


def _twice(pattern):
    elements = _elements(pattern)
    return len(set(elements)) < len(elements)


pairs = st.lists(
    st.tuples(st.integers(-20, 20), st.integers(1, 6)), min_size=1, max_size=4
)


@settings(max_examples=200, deadline=None)
@given(pairs)
@example([(2, 3), (3, 2)])
@example([(2, 4), (3, 2)])
@example([(2, 3), (3, 3)])
@example([(6, 3), (10, 3), (15, 2)])
@example([(-1, 3), (2, 2)])
@example([(1, 3), (2, 1)])
@example([(0, 1), (1, 3)])
@example([(0, 2)])
@example([(5, 4), (6, 4), (8, 4)])
def test_a_pattern_repeats_when_a_walk_meets_an_element_again(pattern):
    assert revisits(pattern) == _twice(pattern)


def test_every_small_pattern_of_three_axes_is_judged_rightly():
    """All steps up to 9 and counts up to 4: each of the ways of judging comes up."""
    axes = [(step, num) for step in range(1, 10) for num in (2, 3, 4)]
    for pattern in itertools.combinations_with_replacement(axes, 3):
        assert revisits(pattern) == _twice(pattern), pattern


@pytest.mark.parametrize(
    "pattern, twice",
    [
        # more visits than elements, nested, kept apart by divisors, or two that meet
        ([(1, 10**6), (1, 10**6)], True),
        ([(10**6, 10**6), (1, 10**6)], False),
        ([(10**6 - 1, 10**6), (1, 10**6)], True),
        ([(10**6 + 1, 10**6), (10**6, 10**6 + 2)], False),
        ([(10**6 + 1, 10**6 + 1), (10**6, 10**6 + 2)], True),
        ([(3, 10**6), (7, 10**6), (2, 10**6)], True),
    ],
)
def test_large_patterns_are_judged_without_a_walk(pattern, twice):
    """A walk over any of these would take days."""
    assert revisits(pattern) is twice


def test_a_pattern_that_interleaves_is_written(bench):
    tile, source = bench.sbuf(4, 8), bench.sbuf(4, 6)
    before = tile.numpy()
    window = tile.ap([[8, 4], [2, 3], [3, 2]])
    bench.isa.tensor_copy(window, source.reshape(4, 3, 2))
    expected = before.copy()
    expected[:, [0, 3, 2, 5, 4, 7]] = source.numpy()
    np.testing.assert_array_equal(tile.numpy(), expected)
    linear = bench.hbm(8)
    bench.isa.dma_copy(linear.ap([[2, 3], [3, 2]]), bench.hbm(3, 2))


@pytest.mark.parametrize("pattern", [[[1, 4], [3, 3]], [[1, 3], [2, 2]], [[0, 2]]])
def test_a_pattern_that_repeats_is_read_and_not_written(bench, pattern):
    tile = bench.sbuf(4, 12)
    window = tile.ap([[12, 4], *pattern])
    np.testing.assert_array_equal(
        window.numpy().reshape(4, -1), tile.numpy()[:, _elements(pattern)]
    )
    with bench.refuses(flashlib.FreeSizeError, "dst has elements that repeat"):
        bench.isa.memset(window, 0.0)
