"""The caches: where tokens land, what forks share, what a refusal leaves alone."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flashlib import (
    ArgumentError,
    CapacityError,
    ContiguousCache,
    DTypeError,
    PagedCache,
    RingCache,
    ShapeError,
)

SIZES = {"n_kv_heads": 2, "head_dim": 3, "head_dim_v": 4}


def tokens(batch, n, seed=0, dtype=np.float32):
    random = np.random.default_rng(seed)
    k = random.standard_normal((batch, n, 2, 3)).astype(dtype)
    return k, random.standard_normal((batch, n, 2, 4)).astype(dtype)


def state(cache):
    """Everything that a refused call must leave as it was."""
    parts = [cache.k.tobytes(), cache.v.tobytes(), cache.seqlens.tolist(), cache.batch]
    if isinstance(cache, PagedCache):
        parts += [cache.block_table.tolist(), cache.free_blocks]
    return parts


def row_of(cache, b):
    """The live tokens of one row, read as attention reads them."""
    length = int(cache.seqlens[b])
    if not isinstance(cache, PagedCache):
        live = min(length, cache.capacity)
        return cache.k[b, :live], cache.v[b, :live]
    pages = cache.block_table[b][: -(-length // cache.block_len)]
    return tuple(
        x[pages].reshape(-1, *x.shape[2:])[:length] for x in (cache.k, cache.v)
    )


MAKE = {
    "contiguous": lambda: ContiguousCache(2, 8, **SIZES),
    "ring": lambda: RingCache(2, 8, **SIZES),
    "paged": lambda: PagedCache(2, 9, 2, **SIZES),
}
every_cache = pytest.mark.parametrize("make", MAKE.values(), ids=list(MAKE))


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


@pytest.mark.parametrize("window", [1, 2, 3, 5])
@pytest.mark.parametrize("chunks", [(1,) * 12, (3, 4, 5), (12,), (1, 7, 0, 4)], ids=str)
def test_a_ring_holds_the_last_tokens_oldest_first(window, chunks):
    ring, (k, v), seen = RingCache(2, window, **SIZES), tokens(2, 12), 0
    for n in chunks:
        ring.append(k[:, seen : seen + n], v[:, seen : seen + n])
        seen += n
        live = min(seen, window)
        assert ring.k.shape == (2, window, 2, 3) and ring.capacity == window
        assert np.array_equal(ring.k[:, :live], k[:, seen - live : seen])
        assert np.array_equal(ring.v[:, :live], v[:, seen - live : seen])
    assert ring.seqlens.tolist() == [12, 12]


def test_a_fork_shares_until_somebody_writes():
    cache = PagedCache(1, 6, 2, **SIZES)
    k, v = tokens(1, 3)
    cache.append(k, v)
    child = cache.fork(0)
    assert child == 1 and cache.batch == 2 and cache.free_blocks == 4
    new_k, new_v = tokens(2, 1, seed=5)
    cache.append(new_k, new_v)
    table = cache.block_table
    # The full page is shared for good; the last one was copied by one of the two.
    assert table[0, 0] == table[1, 0] and table[0, 1] != table[1, 1]
    assert cache.free_blocks == 3
    for b in range(2):
        got_k, got_v = row_of(cache, b)
        assert np.array_equal(got_k, np.concatenate([k[0], new_k[b]]))
        assert np.array_equal(got_v, np.concatenate([v[0], new_v[b]]))


def test_a_fork_counts_the_copies_that_an_append_takes():
    cache = PagedCache(1, 3, 2, **SIZES)
    cache.append(*tokens(1, 3))
    cache.fork(0)
    cache.fork(0)
    before = state(cache)
    with pytest.raises(CapacityError, match="take 2 pages"):
        cache.append(*tokens(3, 1))
    assert state(cache) == before
    cache.free(2)
    before = state(cache)
    with pytest.raises(CapacityError):  # a copy for row 0, a page for row 2
        cache.append(*tokens(3, 1))
    assert state(cache) == before


def test_free_and_truncate_return_pages():
    cache = PagedCache(2, 6, 2, **SIZES)
    cache.append(*tokens(2, 5))
    assert cache.free_blocks == 0
    cache.truncate(0, 4)
    assert cache.free_blocks == 1 and cache.seqlens.tolist() == [4, 5]
    cache.truncate(0, 4)
    cache.free(1)
    assert cache.free_blocks == 4 and cache.seqlens.tolist() == [4, 0]
    assert (cache.block_table[1] == -1).all()
    cache.append(*tokens(2, 1, seed=3))
    assert cache.seqlens.tolist() == [5, 1]


def test_rows_and_lengths_that_do_not_exist():
    cache = PagedCache(1, 4, 2, **SIZES)
    cache.append(*tokens(1, 3))
    before = state(cache)
    for call in (
        lambda: cache.truncate(0, 4),
        lambda: cache.truncate(0, -1),
        lambda: cache.truncate(1, 0),
        lambda: cache.truncate(-1, 0),
        lambda: cache.truncate(0, 1.5),
        lambda: cache.fork(1),
        lambda: cache.free(7),
    ):
        with pytest.raises(ArgumentError):
            call()
        assert state(cache) == before
    for wrong in (-1, 1.5, True):
        with pytest.raises(ArgumentError):
            PagedCache(1, wrong, 2, 1, 1)
    with pytest.raises(ArgumentError):
        RingCache(1, 0, 1, 1)


actions = st.lists(
    st.tuples(
        st.sampled_from(["append", "append", "fork", "truncate", "free"]),
        st.integers(0, 5),
        st.integers(0, 4),
    ),
    max_size=14,
)


@settings(max_examples=150, deadline=None)
@given(actions, st.integers(1, 4))
def test_a_paged_cache_is_a_list_of_lists(plan, block_len):
    """Against a model that copies everything and shares nothing."""
    cache, model, seed = PagedCache(1, 12, block_len, **SIZES), [[]], 0
    for action, which, n in plan:
        row = which % len(model)
        if action == "append":
            seed += 1
            k, v = tokens(len(model), n, seed)
            before = state(cache)
            try:
                cache.append(k, v)
            except CapacityError:
                assert state(cache) == before
                continue
            for b, line in enumerate(model):
                line += list(zip(k[b], v[b], strict=True))
        elif action == "fork" and len(model) < 5:
            assert cache.fork(row) == len(model)
            model.append(list(model[row]))
        elif action == "truncate":
            length = min(n, len(model[row]))
            cache.truncate(row, length)
            del model[row][length:]
        elif action == "free":
            cache.free(row)
            model[row].clear()
        check(cache, model)


def check(cache, model):
    table = cache.block_table
    assert cache.seqlens.tolist() == [len(line) for line in model]
    for b, line in enumerate(model):
        k, v = row_of(cache, b)
        for t, (want_k, want_v) in enumerate(line):
            assert np.array_equal(k[t], want_k) and np.array_equal(v[t], want_v)
        assert (table[b][-(-len(line) // cache.block_len) :] == -1).all()
    owned = set(table[table >= 0].tolist())
    assert cache.free_blocks == cache.num_blocks - len(owned)


def test_a_ring_may_be_given_views_of_itself():
    ring = RingCache(1, 4, 1, 1)
    x = np.arange(6, dtype=np.float32).reshape(1, 6, 1, 1)
    ring.append(x, x)
    ring.append(ring.k[:, ::-1], ring.v[:, ::-1])
    assert ring.k.ravel().tolist() == ring.v.ravel().tolist() == [5, 4, 3, 2]
    ring.append(x[:, :2], x[:, :2])
    assert ring.v.ravel().tolist() == [3, 2, 0, 1]


@every_cache
def test_no_new_tokens_change_nothing(make):
    cache = make()
    cache.append(*tokens(2, 3))
    before = state(cache)
    cache.append(*tokens(2, 0))
    assert state(cache) == before


def test_no_new_tokens_take_no_page_though_the_last_one_is_shared():
    cache = PagedCache(1, 2, 2, **SIZES)
    cache.append(*tokens(1, 3))
    cache.fork(0)
    before = state(cache)
    cache.append(*tokens(2, 0))
    assert state(cache) == before and cache.free_blocks == 0


def test_the_lowest_free_page_is_taken_first():
    cache = PagedCache(3, 6, 2, **SIZES)
    cache.append(*tokens(3, 3))
    pages = cache.block_table.copy()
    for row in (2, 0, 1):
        cache.free(row)
    cache.append(*tokens(3, 3, seed=1))
    assert np.array_equal(cache.block_table, pages)
    assert sorted(pages[pages >= 0].tolist()) == list(range(6))


@pytest.mark.parametrize("size", [2**40, 2**62, 10**30])
@pytest.mark.parametrize("kind", [ContiguousCache, RingCache, PagedCache])
def test_more_memory_than_there_is(kind, size):
    sizes = (1, size, 2) if kind is PagedCache else (1, size)
    with pytest.raises(CapacityError, match="expected memory for them"):
        kind(*sizes, **SIZES)


def test_no_dtype_is_not_float64():
    with pytest.raises(DTypeError, match="dtype has None"):
        ContiguousCache(1, 4, **SIZES, dtype=None)
