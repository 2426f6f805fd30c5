"""Where a backend takes another number than it is given, and how it says so."""

from functools import partial

import numpy as np
import pytest
from ways import same_bits

import flashlib
from flashlib import get_backend
from flashlib.backends.blocked import LONGEST_TILE
from flashlib.backends.tiles import TilesBackend
from flashlib.chains import longest_tile, shortest_tile
from flashlib.decode_problem import MOST_SPLITS
from flashlib.problem import attention_problem
from flashlib.testing import make_qkv

AVAILABLE = flashlib.available_backends()
LOOPS = ("scalar", "simd", "pool", "blocked")


@pytest.mark.parametrize("backend", [*LOOPS, pytest.param(TilesBackend(), id="tiles")])
def test_a_loop_walks_a_long_tile_in_pieces(backend):
    q, k, v = make_qkv(3, 300, dtype=np.float32)
    attend = partial(flashlib.flash_attention, q, k, v, backend=backend)
    longest = longest_tile(300)
    assert longest == LONGEST_TILE == 64
    assert same_bits(attend(tile=longest), attend(tile=1000))
    assert not same_bits(attend(tile=longest), attend(tile=16))


def test_numpy_takes_a_long_tile_as_it_is():
    q, k, v = make_qkv(3, 300, dtype=np.float32)
    attend = partial(flashlib.flash_attention, q, k, v, backend="numpy")
    assert not same_bits(attend(tile=64), attend(tile=300))
    assert same_bits(attend(tile=300), attend(tile=1000))


@pytest.mark.parametrize("backend", [name for name in AVAILABLE if name != "blas"])
def test_a_short_tile_is_made_longer(backend):
    q, k, v = make_qkv(2, 640, n_heads=1, n_kv_heads=1, dtype=np.float32)
    attend = partial(flashlib.flash_attention, q, k, v, backend=backend)
    assert shortest_tile(640) == 10
    assert same_bits(attend(tile=1), attend(tile=10))


def test_the_choice_says_how_long_a_tile_may_be():
    problem, _ = attention_problem(*make_qkv(3))
    reason = get_backend("blocked").choose(problem).reason
    assert f"at most {LONGEST_TILE} keys" in reason


@pytest.mark.parametrize("backend", AVAILABLE)
def test_more_parts_than_may_be_are_as_many_as_may_be(backend):
    q, k, v = (x[None] for x in make_qkv(1, 300, dtype=np.float32))
    decode = partial(
        flashlib.flash_attention_decode, q, k, v, cache_seqlens=[300], backend=backend
    )
    most = decode(num_splits=MOST_SPLITS)
    assert same_bits(most, decode(num_splits=1000))
    assert same_bits(most, decode(num_splits=MOST_SPLITS - 1)) == (backend == "blas")
