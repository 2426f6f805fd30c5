"""Faults in decode, pages and packed rows.

What a call of plain attention can express runs over segments, batch rows and pages
through the checks of the contract as well.
"""

import numpy as np
import pytest
from cached_ways import cached_ways
from known_faults.near import backends, close, row, splits
from ways import same_bits

import flashlib
from flashlib import ArgumentError, ShapeError

INF, NAN = np.inf, np.nan
LN2, LN3 = np.log(2), np.log(3)

dtypes = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def pages(*x, block_len=1, dtype=np.float32):
    return np.array(x, dtype).reshape(-1, block_len, 1, 1)


@backends
@dtypes
@splits
def test_h01_junk_behind_the_last_key(backend, dtype, num_splits):
    """Slots that were never written are not read.

    Seen in flash-attention#1745, flashinfer#941, vllm#641.
    """

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
    """A page that is attended exists: -1 is not the last one.

    Seen in numba#8028, numba#4436.
    """
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
    """k and v have equal lengths; neither is trusted for both.

    Seen in pytorch pull 193728.
    """
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
    """A sink is counted once, however many splits there are.

    Seen in rocm-libraries#12227, modular#6198.
    """

    def run(n, sink):
        q, k = np.zeros((1, 1, 1), np.float32), np.zeros((n, 1, 1), np.float32)
        return way(q, k, k + 1, sink=np.float32([sink]))

    close(run(2, 1.0).out, 0.4238831)
    close(run(2, 1.0).lse, 1.5514447)
    close(run(3, -1.0).out, 0.8907682)


@backends
@splits
def test_h19_a_table_longer_than_the_sequence(backend, num_splits):
    """Entries of a table behind the last page are not looked at.

    Seen in pegainfer pull 350, flashinfer#320.
    """
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


@backends
def test_h24_segments_without_queries_or_keys(backend):
    """A segment may have no queries or no keys.

    Seen in flash-attention#1537, flash-attention#1713, lmdeploy#414.
    """

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
    """Rows behind the last segment are 0 with lse -inf.

    Seen in flash-attention#1537, flash-attention#1713, lmdeploy#414.
    """
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
    """A result does not depend on its batch mates.

    Seen in TabPFN#800, RL-Kernel#147.
    """
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
    """A window is counted in tokens, not in pages.

    Seen in sglang#33603, vllm#23934.
    """
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
