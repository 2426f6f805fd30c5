"""Masks as bounds and as data say the same."""

import numpy as np
import pytest

from flashlib.masks import (
    as_dense,
    attended,
    band_mask,
    causal_mask,
    document_mask,
    key_tiles,
    tiles,
    window_mask,
)
from flashlib.problem import attention_problem
from flashlib.testing import make_qkv

BANDS = [(None, None), (None, 0), (2, 0), (0, 3), (1, 1), (None, 2), (4, None)]
SIZES = [(4, 4), (2, 7), (7, 2), (1, 5), (5, 1), (6, 0)]


def problem(seq_q, seq_k, band=(None, None), **options):
    return attention_problem(*make_qkv(seq_q, seq_k), window=band, **options)[0]


def test_causal_is_bottom_right():
    assert causal_mask(2, 5).astype(int).tolist() == [[1, 1, 1, 1, 0], [1, 1, 1, 1, 1]]
    assert causal_mask(3, 1).astype(int).tolist() == [[0], [0], [1]]


def test_a_window_of_w_is_w_minus_one_to_the_left():
    np.testing.assert_array_equal(window_mask(5, 5, 2), band_mask(5, 5, 1, 0))
    np.testing.assert_array_equal(window_mask(5, 5, (2, 1)), band_mask(5, 5, 2, 1))
    assert window_mask(5, 8, 3).sum(axis=1).tolist() == [3] * 5


def test_documents():
    blocks = document_mask([3, 3, 1, 1, 1])
    assert blocks.sum() == 13 and blocks[:2, :2].all() and not blocks[:2, 2:].any()


@pytest.mark.parametrize("band", BANDS, ids=str)
@pytest.mark.parametrize(("seq_q", "seq_k"), SIZES)
def test_dense_band_equals_kv_range(seq_q, seq_k, band):
    it = problem(seq_q, seq_k, band)
    dense = as_dense(it)
    np.testing.assert_array_equal(dense[0], band_mask(seq_q, seq_k, *band))
    for i in range(seq_q):
        lo, hi = it.kv_range(i)
        assert np.flatnonzero(dense[0, i]).tolist() == list(range(lo, hi))


@pytest.mark.parametrize("band", BANDS, ids=str)
@pytest.mark.parametrize(("seq_q", "seq_k"), SIZES)
@pytest.mark.parametrize("size", [(1, 1), (2, 3), (64, 64)])
def test_tile_kinds_are_what_the_cells_say(seq_q, seq_k, band, size):
    it = problem(seq_q, seq_k, band)
    dense, covered = as_dense(it)[0], np.zeros((seq_q, seq_k), int)
    for rows, keys, kind in tiles(it, *size):
        cells = dense[rows.start : rows.stop, keys.start : keys.stop]
        want = "live" if cells.all() else "partial" if cells.any() else "dead"
        assert kind == want
        covered[rows.start : rows.stop, keys.start : keys.stop] += 1
    assert (covered == 1).all()


@pytest.mark.parametrize("band", BANDS, ids=str)
def test_key_tiles_cover_what_the_rows_see_and_no_more(band):
    it = problem(6, 9, band)
    for rows in (range(6), range(2, 4), range(5, 6)):
        seen = [j for keys in key_tiles(it, rows, 2) for j in keys]
        union = {j for i in rows for j in range(*it.kv_range(i))}
        assert seen == sorted(union)


def test_data_masks_join_the_band():
    mask = np.ones((4, 3, 5), bool)
    mask[2, 1, 0] = False
    bias = np.zeros((3, 5), np.float32)
    bias[0, 1] = -np.inf
    bias[2, 4] = np.nan
    it = attention_problem(*make_qkv(3, 5), causal=True, mask=mask, bias=bias)[0]
    want = mask & causal_mask(3, 5) & (bias != -np.inf)
    np.testing.assert_array_equal(as_dense(it), want)


def test_a_block_without_hidden_cells_needs_no_data():
    it = problem(4, 4, (None, 0))
    assert attended(it, 0, range(2, 4), range(2)) is None
    assert attended(it, 0, range(2), range(2, 4)).any() == np.False_
    full = problem(4, 4, mask=np.ones((4, 4), bool))
    assert attended(full, 0, range(4), range(4)) is None
