"""The rung of query tiles: a backend without a name, held to the same contract."""

from functools import partial

import numpy as np
import pytest
from ways import same_bits

import flashlib
from flashlib.backends.tiles import TilesBackend
from flashlib.contract import failures
from flashlib.kernels.lane_product import LANES
from flashlib.layout import repeat_kv
from flashlib.testing import assert_accurate, make_qkv

TILES = TilesBackend()
JUNK = (np.nan, np.inf, -np.inf, 1e30)
attend = partial(flashlib.flash_attention, backend=TILES)
dtypes = pytest.mark.parametrize("dtype", [np.float32, np.float64])


@pytest.mark.parametrize("tile", [None, 1, 3, 16, 64, 1000])
def test_every_check_of_the_contract_holds(tile):
    assert failures(partial(attend, tile=tile)) == {}


def test_it_has_no_name_and_says_what_it_is():
    assert "tiles" not in flashlib.available_backends()
    assert str(LANES) in TILES.choose(None).reason
    with pytest.raises(flashlib.Refused, match="score"):
        TILES.choose(None, "materialized")


@dtypes
@pytest.mark.parametrize("seq_q", [1, LANES - 1, LANES, LANES + 1, 3 * LANES + 5])
@pytest.mark.parametrize("more", [0, 1, 70])
def test_lengths_around_a_tile_of_queries(dtype, seq_q, more):
    sizes = {"n_heads": 4, "n_kv_heads": 2, "head_dim": 20, "dtype": dtype}
    call = make_qkv(seq_q, seq_q + more, **sizes, seed=seq_q)
    for options in ({}, {"causal": True}, {"window": (9, 3)}, {"window": 40}):
        assert_accurate(attend(*call, **options), *call, **options)


@dtypes
@pytest.mark.parametrize("window", [40, (40, 0), (30, 30)])
@pytest.mark.parametrize("tile", [1, 8, 16])
def test_a_window_that_is_wider_than_a_tile_of_keys(dtype, window, tile):
    """Tiles begin in front of the windows of the later rows, and end within all."""
    call = make_qkv(2 * LANES, 2 * LANES + 50, head_dim=12, dtype=dtype)
    assert_accurate(attend(*call, window=window, tile=tile), *call, window=window)


@pytest.mark.parametrize("width, width_v", [(1, 1), (3, 7), (16, 5), (80, 80)])
def test_any_width(width, width_v):
    q, k, _ = make_qkv(50, 60, head_dim=width)
    v = make_qkv(50, 60, head_dim=width_v)[2]
    assert_accurate(attend(q, k, v, causal=True), q, k, v, causal=True)


@dtypes
@pytest.mark.parametrize("junk", JUNK)
def test_a_hidden_key_changes_no_bit(dtype, junk):
    sizes = {"n_heads": 4, "n_kv_heads": 2, "head_dim": 12, "dtype": dtype}
    q, k, v = make_qkv(70, 130, **sizes)
    mask = np.random.default_rng(0).random((4, 70, 130)) < 0.5
    mask[..., ::5] = False
    clean = attend(q, k, v, mask=mask, causal=True)
    k[::5], v[::5] = junk, junk
    assert same_bits(attend(q, k, v, mask=mask, causal=True), clean)


@pytest.mark.parametrize("junk", JUNK[:3])
def test_a_value_that_some_rows_attend_shows_in_those_rows(junk):
    q, k, v = make_qkv(70, 70, head_dim=12)
    clean = attend(q, k, v, causal=True)
    v[40] = junk
    dirty = attend(q, k, v, causal=True)
    assert np.array_equal(dirty.out[:40], clean.out[:40])
    assert not np.isfinite(dirty.out[40:]).any()
    assert np.array_equal(dirty.lse, clean.lse)


def test_threads_and_repeated_heads_change_no_bit():
    q, k, v = make_qkv(150, 150, n_heads=6, n_kv_heads=2, head_dim=16)
    first = attend(q, k, v, causal=True)
    many = (repeat_kv(x, 3) for x in (k, v))
    assert same_bits(attend(q, *many, causal=True), first)
    for _ in range(5):
        assert same_bits(attend(q, k, v, causal=True), first)
