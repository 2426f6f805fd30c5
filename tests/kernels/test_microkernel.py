"""The register tile against NumPy, on numbers whose products and sums are exact."""

from functools import cache

import numpy as np
import pytest
from kernels.compiled import compiled, small_integers

from flashlib.kernels.microkernel import (
    accumulate_panel,
    lanes_of,
    rows_of,
    score_panel,
    vector_lanes,
    vectors_of,
)
from flashlib.kernels.targets import TARGETS, this_target

EMPTY = -99
DTYPE = pytest.mark.parametrize("dtype", [np.float32, np.float64])
# The widest and the narrowest; both compile everywhere.
TARGET = pytest.mark.parametrize("target", sorted({0, this_target()}))


@cache
def kernels_for(target):
    @compiled
    def sizes(like):
        lanes = lanes_of(like, target), vector_lanes(like, target)
        return rows_of(target), vectors_of(target), lanes

    @compiled
    def score(panel, panel_at, lanes, lanes_at, out, out_at, depth, scale):
        score_panel(panel, panel_at, lanes, lanes_at, out, out_at, depth, scale, target)

    @compiled
    def accumulate(panel, panel_at, p, p_at, corr, corr_at, acc, acc_at, depth):
        accumulate_panel(
            panel, panel_at, p, p_at, corr, corr_at, acc, acc_at, depth, target
        )

    return sizes, score, accumulate


def between(x, before, after=3):
    """Return `x`, flat, between numbers that nobody may use."""
    return np.pad(x.ravel(), (before, after), constant_values=EMPTY)


@pytest.mark.parametrize("target", range(len(TARGETS)))
def test_a_tile_has_the_shape_of_its_target(target):
    sizes, *_ = kernels_for(target)
    shape = TARGETS[target]
    for dtype, bytes_each in ((np.float32, 4), (np.float64, 8)):
        each = shape.vector_bytes // bytes_each
        want = shape.rows, shape.vectors, (shape.vectors * each, each)
        assert sizes(np.empty(1, dtype)) == want


@TARGET
@DTYPE
@pytest.mark.parametrize("depth", [0, 1, 2, 127, 128, 129, 300])
def test_scores_are_scaled_products(dtype, target, depth):
    sizes, score, _ = kernels_for(target)
    n_rows, _, (n_lanes, _) = sizes(np.empty(1, dtype))
    panel = small_integers(1, depth, n_rows, dtype=dtype)
    lanes = small_integers(2, depth, n_lanes, dtype=dtype)
    out = between(np.zeros((n_rows, n_lanes), dtype), 7)
    score(between(panel, 5), 5, between(lanes, 2), 2, out, 7, depth, dtype(0.5))
    want = between(panel.T @ lanes * dtype(0.5), 7)
    np.testing.assert_array_equal(out, want)


@TARGET
@DTYPE
@pytest.mark.parametrize("depth", [0, 1, 64, 129])
def test_sums_are_rescaled_lane_by_lane_and_added_to(dtype, target, depth):
    sizes, _, accumulate = kernels_for(target)
    n_rows, _, (n_lanes, _) = sizes(np.empty(1, dtype))
    panel = small_integers(3, depth, n_rows, dtype=dtype)
    p = small_integers(4, depth, n_lanes, dtype=dtype)
    corr = small_integers(5, n_lanes, dtype=dtype)
    before = small_integers(6, n_rows, n_lanes, dtype=dtype)
    acc = between(before, 4)
    accumulate(
        between(panel, 5), 5, between(p, 2), 2, between(corr, 1), 1, acc, 4, depth
    )
    np.testing.assert_array_equal(acc, between(before * corr + panel.T @ p, 4))


@DTYPE
@pytest.mark.parametrize("depth, pieces", [(128, 0), (129, 1), (256, 128), (300, 172)])
def test_a_long_score_is_summed_in_pieces_of_128(dtype, depth, pieces):
    """After a 1, addends too small for it are lost until a new piece begins."""
    sizes, score, _ = kernels_for(this_target())
    n_rows, _, (n_lanes, _) = sizes(np.empty(1, dtype))
    tiny = np.finfo(dtype).eps / 4
    panel = np.full((depth, n_rows), tiny, dtype)
    panel[0] = 1
    out = np.empty(n_rows * n_lanes, dtype)
    score(panel.ravel(), 0, np.ones(depth * n_lanes, dtype), 0, out, 0, depth, dtype(1))
    kept = dtype(1)
    for piece in (min(pieces, 128), max(pieces - 128, 0)):
        kept += dtype(piece * tiny)
    assert (out == kept).all()


@DTYPE
def test_a_tile_is_summed_from_zero_before_it_is_added(dtype):
    sizes, _, accumulate = kernels_for(this_target())
    n_rows, _, (n_lanes, _) = sizes(np.empty(1, dtype))
    tiny = np.finfo(dtype).eps / 4
    panel, p = np.full(64 * n_rows, tiny, dtype), np.ones(64 * n_lanes, dtype)
    acc, corr = np.ones(n_rows * n_lanes, dtype), np.ones(n_lanes, dtype)
    accumulate(panel, 0, p, 0, corr, 0, acc, 0, 64)
    assert (acc == 1 + 64 * tiny).all()
