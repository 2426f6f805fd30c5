"""Mistakes that other projects shipped in decode, pages, packed rows and caches.

One test per case, named by its id. The cases that plain attention can express run
over segments, batch rows and pages through the contract's checks as well.
"""

import numpy as np
import pytest
from engine.cached_ways import cached_ways, engines
from ways import same_bits

import flashlib
from flashlib import (
    ArgumentError,
    CapacityError,
    ContiguousCache,
    PagedCache,
    RingCache,
    ShapeError,
)

INF, NAN = np.inf, np.nan
LN2, LN3 = np.log(2), np.log(3)

backends = pytest.mark.parametrize("backend", engines())
dtypes = pytest.mark.parametrize("dtype", [np.float32, np.float64])
splits = pytest.mark.parametrize("num_splits", [None, 1, 2, 3])


def row(*x, dtype=np.float32):
    """n tokens of one sequence, one head, width 1: ``[1, n, 1, 1]``."""
    return np.array(x, dtype).reshape(1, -1, 1, 1)


def pages(*x, block_len=1, dtype=np.float32):
    return np.array(x, dtype).reshape(-1, block_len, 1, 1)


def close(got, want):
    np.testing.assert_allclose(np.ravel(got), np.ravel(want), rtol=3e-7)


@backends
@dtypes
@splits
def test_h01_junk_behind_the_last_key(backend, dtype, num_splits):
    def decode(k_junk, v_junk):
        return flashlib.flash_attention_decode(
            row(1, dtype=dtype),
            row(1, 1, k_junk, k_junk, dtype=dtype),
            row(1, 3, *v_junk, dtype=dtype),
            cache_seqlens=[2],
            scale=1.0,
            num_splits=num_splits,
            backend=backend,
        )

    clean = decode(0, (0, 0))
    close(clean.out, 2)
    close(clean.lse, 1 + LN2)
    for k_junk in (NAN, INF, -INF, 1e30):
        assert same_bits(decode(k_junk, (NAN, INF)), clean)


@backends
def test_h06_a_page_that_is_none_is_refused(backend):
    k, v = pages(0, 0, 0), pages(10, 20, 30)

    def paged(table, length):
        return flashlib.flash_attention_paged(
            row(0), k, v, block_table=table, cache_seqlens=[length], backend=backend
        )

    for wrong in (-1, 3, 2**31 - 1):
        with pytest.raises(ArgumentError, match=r"block_table\[0, 0\] has"):
            paged([[wrong]], 1)
    with pytest.raises(ArgumentError, match=r"block_table\[0, 1\] has -1"):
        paged([[1, -1]], 2)
    assert paged([[1, -1]], 1).out.item() == 20


@backends
@pytest.mark.parametrize("n_k, n_v", [(5, 6), (6, 5)])
def test_h11_k_and_v_of_different_length(backend, n_k, n_v):
    k, v = row(*range(n_k)), row(*range(n_v))
    with pytest.raises(ShapeError, match="k_cache and v_cache"):
        flashlib.flash_attention_decode(
            row(0), k, v, cache_seqlens=[1], backend=backend
        )
    with pytest.raises(ShapeError, match="k_pages and v_pages"):
        flashlib.flash_attention_paged(
            row(0), k, v, block_table=[[0]], cache_seqlens=[1], backend=backend
        )
    with pytest.raises(ShapeError, match="k and v have"):
        flashlib.flash_attention_varlen(
            row(0)[0],
            k[0],
            v[0],
            cu_seqlens_q=[0, 1],
            cu_seqlens_k=[0, 5],
            backend=backend,
        )


@pytest.mark.parametrize("way", cached_ways(), ids=str)
def test_h15_a_sink_is_counted_once(way):
    def run(n, sink):
        q, k = np.zeros((1, 1, 1), np.float32), np.zeros((n, 1, 1), np.float32)
        return way(q, k, k + 1, sink=np.float32([sink]))

    close(run(2, 1.0).out, 0.4238831)
    close(run(2, 1.0).lse, 1.5514447)
    close(run(3, -1.0).out, 0.8907682)


@backends
@splits
def test_h19_a_table_longer_than_the_sequence(backend, num_splits):
    for behind in (1, -1, 1000000):
        result = flashlib.flash_attention_paged(
            row(0),
            pages(0, 0, 0, 0, block_len=2),
            pages(1, 3, 99, 99, block_len=2),
            block_table=[[0, behind]],
            cache_seqlens=[2],
            num_splits=num_splits,
            backend=backend,
        )
        close(result.out, 2)
        close(result.lse, LN2)


def test_h20_an_append_lands_in_the_next_slots():
    cache = ContiguousCache(1, 8, 1, 1)
    cache.append(row(1, 2, 3), row(1, 2, 3))
    cache.append(row(4, 5), row(4, 5))
    assert cache.v.ravel().tolist() == [1, 2, 3, 4, 5, 0, 0, 0]
    paged = PagedCache(1, 4, 2, 1, 1)
    paged.append(row(1, 2, 3), row(1, 2, 3))
    paged.append(row(4, 5), row(4, 5))
    assert paged.block_table[0].tolist() == [0, 1, 2, -1]
    assert paged.v[:3].reshape(3, 2).tolist() == [[1, 2], [3, 4], [5, 0]]
    cache.append(row(6, 7), row(6, 7))
    before = cache.k.tobytes(), cache.v.tobytes(), cache.seqlens.tolist()
    with pytest.raises(CapacityError, match="expected at most 1"):
        cache.append(row(8, 9), row(8, 9))
    assert before == (cache.k.tobytes(), cache.v.tobytes(), cache.seqlens.tolist())


@backends
def test_h21_a_ring_keeps_the_last_window(backend):
    ring = RingCache(1, 4, 1, 1)
    for token in range(6):
        ring.append(row(0), row(token))
        live = np.minimum(ring.seqlens, ring.capacity)
        got = flashlib.flash_attention_decode(
            row(0), ring.k, ring.v, cache_seqlens=live, backend=backend
        )
        close(got.out, np.mean(range(max(token - 3, 0), token + 1)))
    assert ring.seqlens.tolist() == [6]


@backends
@splits
def test_h22_a_rollback_leaves_no_trace(backend, num_splits):
    random = np.random.default_rng(22)

    def tokens(n):
        return random.standard_normal((2, 2, n, 1, 4)).astype(np.float32)

    prompt, guesses, query = tokens(5), tokens(3), tokens(1)[0]
    cache, clean = (PagedCache(2, 12, 2, 1, 4) for _ in range(2))
    for each, seen in ((cache, 3), (clean, 1)):
        each.append(*prompt)
        each.truncate(0, 3)
        each.append(*guesses[:, :, :seen])
    assert cache.seqlens.tolist() == [6, 8]
    cache.truncate(0, 4)
    assert cache.seqlens.tolist() == [4, 8] and clean.seqlens.tolist() == [4, 6]

    def last(each, b):
        return flashlib.flash_attention_paged(
            query[b : b + 1],
            each.k,
            each.v,
            block_table=each.block_table[b : b + 1],
            cache_seqlens=each.seqlens[b : b + 1],
            num_splits=num_splits,
            backend=backend,
        )

    assert same_bits(last(cache, 0), last(clean, 0))


@backends
def test_h24_segments_without_queries_or_keys(backend):
    def run(**options):
        q, k = np.zeros((3, 1, 1), np.float32), np.zeros((4, 1, 1), np.float32)
        v = np.array([1, 3, NAN, NAN], np.float32).reshape(4, 1, 1)
        return flashlib.flash_attention_varlen(
            q,
            k,
            v,
            cu_seqlens_q=[0, 1, 1, 3],
            cu_seqlens_k=[0, 2, 4, 4],
            backend=backend,
            **options,
        )

    close(run().out, [2, 0, 0])
    close(run().lse, [LN2, -INF, -INF])
    sunk = run(sink=np.float32([0]))
    close(sunk.out, [4 / 3, 0, 0])
    close(sunk.lse, [LN3, 0, 0])


@backends
def test_h24_rows_past_the_last_segment(backend):
    x = np.ones((5, 2, 1), np.float32)
    result = flashlib.flash_attention_varlen(
        x,
        x,
        x,
        cu_seqlens_q=[0, 2],
        cu_seqlens_k=[0, 5],
        sink=np.float32([0, 1]),
        backend=backend,
    )
    assert (result.out[2:] == 0).all() and (result.lse[2:] == -INF).all()
    assert (result.lse[:2] > 0).all()


@backends
@splits
def test_h28_batch_mates_change_no_bit(backend, num_splits):
    random = np.random.default_rng(28)
    lengths = np.array([3, 40, 1, 17])
    q = random.standard_normal((4, 1, 4, 8), np.float32)
    k, v = random.standard_normal((2, 4, 40, 2, 8), np.float32)

    def decode(some):
        return flashlib.flash_attention_decode(
            q[some],
            k[some],
            v[some],
            cache_seqlens=lengths[some],
            num_splits=num_splits,
            backend=backend,
        )

    together = decode([0, 1, 2, 3])
    for some in ([0], [1], [2], [3], [0, 1], [3, 2], [1, 3]):
        mine = flashlib.AttentionOutput(together.out[some], together.lse[some])
        assert same_bits(decode(some), mine)


@backends
@splits
def test_h29_a_window_is_counted_in_tokens(backend, num_splits):
    v = pages(*range(7), NAN, block_len=4)

    def paged(seq_new, window):
        return flashlib.flash_attention_paged(
            row(*[0] * seq_new),
            v * 0,
            v,
            block_table=[[0, 1]],
            cache_seqlens=[7],
            window=window,
            num_splits=num_splits,
            backend=backend,
        ).out

    for window, want in ((2, 5.5), ((1, 0), 5.5), (5, 4), (100, 3)):
        close(paged(1, window), want)
    close(paged(2, 2), [4.5, 5.5])
