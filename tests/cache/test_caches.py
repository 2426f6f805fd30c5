"""All caches: where tokens land, what a refusal leaves alone, which types are kept."""

import numpy as np
import pytest
from cache.small_caches import MAKE, SIZES, every_cache, row_of, state, tokens

from flashlib import (
    ArgumentError,
    CapacityError,
    ContiguousCache,
    DTypeError,
    PagedCache,
    RingCache,
    ShapeError,
)


@every_cache
def test_tokens_come_back_in_order(make):
    cache = make()
    k, v = tokens(2, 7)
    for start, stop in ((0, 3), (3, 3), (3, 4), (4, 7)):
        cache.append(k[:, start:stop], v[:, start:stop])
        for b in range(2):
            got_k, got_v = row_of(cache, b)
            assert np.array_equal(got_k, k[b, :stop])
            assert np.array_equal(got_v, v[b, :stop])
    assert cache.seqlens.tolist() == [7, 7] and cache.seqlens.dtype == np.int64


@every_cache
def test_what_does_not_fit_the_cache_changes_nothing(make):
    cache = make()
    cache.append(*tokens(2, 3))
    before, (k, v) = state(cache), tokens(2, 2, seed=1)
    wrong = [
        (DTypeError, k.astype(np.float64), v),
        (DTypeError, k, v.astype(np.float16)),
        (ShapeError, k[:1], v[:1]),
        (ShapeError, k, v[:, :1]),
        (ShapeError, k[:, :, :1], v),
        (ShapeError, k[..., :2], v),
        (ShapeError, k, v[..., :3]),
        (ShapeError, k[0], v[0]),
    ]
    for error, new_k, new_v in wrong:
        with pytest.raises(error):
            cache.append(new_k, new_v)
        assert state(cache) == before


@pytest.mark.parametrize("name", ["contiguous", "paged"])
def test_too_many_tokens_change_nothing(name):
    cache = MAKE[name]()
    cache.append(*tokens(2, 7))
    before = state(cache)
    for n in (3, 100):
        with pytest.raises(CapacityError, match=f"k has {n} new tokens"):
            cache.append(*tokens(2, n))
        assert state(cache) == before
    cache.append(*tokens(2, 1))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "bfloat16"])
def test_every_float_type_is_stored(dtype):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    for make in (ContiguousCache, RingCache):
        cache = make(1, 4, **SIZES, dtype=kind)
        cache.append(*tokens(1, 2, dtype=kind))
        assert cache.k.dtype == cache.v.dtype == kind
    with pytest.raises(DTypeError):
        PagedCache(1, 4, 2, 1, 1, dtype=np.int32)


@every_cache
def test_no_new_tokens_change_nothing(make):
    cache = make()
    cache.append(*tokens(2, 3))
    before = state(cache)
    cache.append(*tokens(2, 0))
    assert state(cache) == before


@pytest.mark.parametrize("size", [2**40, 2**62, 10**30])
@pytest.mark.parametrize("kind", [ContiguousCache, RingCache, PagedCache])
def test_more_memory_than_there_is(kind, size):
    sizes = (1, size, 2) if kind is PagedCache else (1, size)
    with pytest.raises(CapacityError, match="expected memory for them"):
        kind(*sizes, **SIZES)


def test_no_dtype_is_not_float64():
    with pytest.raises(DTypeError, match="dtype has None"):
        ContiguousCache(1, 4, **SIZES, dtype=None)


@pytest.mark.parametrize("name, tokens_that_fit", [*zip(MAKE, (8, 8, 18), strict=True)])
def test_capacity_counts_tokens(name, tokens_that_fit):
    assert MAKE[name]().capacity == tokens_that_fit


@every_cache
def test_the_lengths_that_were_handed_out_are_a_copy(make):
    cache = make()
    cache.append(*tokens(2, 3))
    lengths = cache.seqlens
    cache.append(*tokens(2, 1))
    assert lengths.tolist() == [3, 3]
    lengths[:] = 0
    assert cache.seqlens.tolist() == [4, 4]


@pytest.mark.parametrize("name", ["n_kv_heads", "head_dim", "head_dim_v"])
@pytest.mark.parametrize("kind", [ContiguousCache, RingCache, PagedCache])
def test_a_cache_of_nothing(kind, name):
    sizes = (1, 4, 2) if kind is PagedCache else (1, 4)
    with pytest.raises(ArgumentError, match=f"{name} has 0"):
        kind(*sizes, **{**SIZES, name: 0})
