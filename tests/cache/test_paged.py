"""Pages: what forks share, what is given back, which page is taken next."""

import numpy as np
import pytest
from cache.small_caches import SIZES, row_of, state, tokens
from hypothesis import given, settings
from hypothesis import strategies as st

from flashlib import ArgumentError, CapacityError, PagedCache, RingCache


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


def test_a_full_row_of_a_full_cache_is_refused_like_any_other():
    cache = PagedCache(1, 2, 2, **SIZES)
    cache.append(*tokens(1, 4))
    before = state(cache)
    with pytest.raises(CapacityError, match="take 1 pages"):
        cache.append(*tokens(1, 1))
    assert state(cache) == before


def test_a_row_that_ends_with_its_page_writes_into_no_other():
    """Behind its last page the table says -1, which is no page, and not the last."""
    cache = PagedCache(2, 6, 2, **SIZES)
    cache.append(*tokens(2, 5))
    cache.fork(1)
    cache.truncate(0, 2)
    assert cache.block_table[:, 2].tolist() == [-1, 5, 5]  # the last page is shared
    new_k, new_v = tokens(3, 1, seed=5)
    cache.append(new_k, new_v)
    assert cache.free_blocks == 0
    for b in range(3):
        got_k, got_v = row_of(cache, b)
        assert np.array_equal(got_k[-1], new_k[b, 0])
        assert np.array_equal(got_v[-1], new_v[b, 0])


def test_the_table_that_was_handed_out_is_a_copy():
    cache = PagedCache(1, 4, 2, **SIZES)
    cache.append(*tokens(1, 3))
    table = cache.block_table
    cache.append(*tokens(1, 3))
    assert table.tolist() == [[0, 1, -1, -1]]
    table[:] = -1
    assert cache.block_table.tolist() == [[0, 1, 2, -1]]
