"""What must not change a single bit of a decode step, cached or in pages."""

import numpy as np
import pytest
from cached_ways import in_pages
from junk import JUNK, backends, draw, dtypes, options_given, with_sink
from ways import same_bits

import flashlib
from flashlib import AttentionOutput
from flashlib.layout import repeat_kv


@backends
@dtypes
@options_given
@pytest.mark.parametrize("seq_new", [1, 3])
def test_junk_behind_the_live_keys(backend, dtype, options, seq_new):
    q, k, v = draw(dtype, (2, seq_new, 6, 20), (2, 90, 2, 20), (2, 90, 2, 9))
    lengths = np.array([7, 71])

    def run(junk, num_splits):
        for b, length in enumerate(lengths):
            k[b, length:], v[b, length:] = junk, junk
        if options.get("window") == 9:  # and in front of the window
            for b, length in enumerate(lengths):
                before = max(length - seq_new - 8, 0)
                k[b, :before], v[b, :before] = junk, junk
        return flashlib.flash_attention_decode(
            q,
            k,
            v,
            cache_seqlens=lengths,
            num_splits=num_splits,
            backend=backend,
            **with_sink(options, 6, dtype),
        )

    for num_splits in (None, 2, 5):
        clean = run(0, num_splits)
        for junk in JUNK:
            assert same_bits(run(junk, num_splits), clean)


@backends
@dtypes
def test_junk_that_some_of_the_new_tokens_see(backend, dtype):
    """The newest key is hidden from every new token but the last."""
    q, k, v = draw(dtype, (1, 4, 4, 8), (1, 40, 2, 8), (1, 40, 2, 8))

    def run(junk):
        k[0, 39], v[0, 39] = junk, junk
        result = flashlib.flash_attention_decode(
            q, k, v, cache_seqlens=[40], backend=backend
        )
        return AttentionOutput(*(x[:, :3].copy() for x in result)), result

    clean, _ = run(0)
    for junk in JUNK:
        mine, everything = run(junk)
        assert same_bits(mine, clean)
        if not np.isfinite(junk):
            assert np.isnan(everything.out[:, 3]).any(axis=-1).all()


@backends
@dtypes
@pytest.mark.parametrize("seq_new", [2, 4])
def test_junk_that_the_window_hides_from_the_later_new_tokens(backend, dtype, seq_new):
    """The oldest key in reach is hidden from every new token but the first."""
    q, k, v = draw(dtype, (1, seq_new, 4, 8), (1, 40, 2, 8), (1, 40, 2, 8))
    oldest = 40 - seq_new - 8

    def run(junk):
        k[0, oldest], v[0, oldest] = junk, junk
        result = flashlib.flash_attention_decode(
            q, k, v, cache_seqlens=[40], window=9, backend=backend
        )
        return AttentionOutput(*(x[:, 1:].copy() for x in result)), result

    clean, _ = run(0)
    for junk in JUNK:
        mine, everything = run(junk)
        assert same_bits(mine, clean)
        if not np.isfinite(junk):
            assert np.isnan(everything.out[:, 0]).any(axis=-1).all()


@backends
@dtypes
@options_given
@pytest.mark.parametrize("block_len", [1, 3, 16, 64])
def test_pages_equal_a_contiguous_cache(backend, dtype, options, block_len):
    q, k, v = draw(dtype, (1, 2, 6, 20), (1, 130, 2, 20), (1, 130, 2, 9))
    options = {**with_sink(options, 6, dtype), "backend": backend}
    for num_splits in (None, 3):
        options["num_splits"] = num_splits
        want = flashlib.flash_attention_decode(q, k, v, cache_seqlens=[130], **options)
        for seed in range(3):
            n_pages = -(-130 // block_len)
            order = np.random.default_rng(seed).permutation(n_pages + 3)
            got = flashlib.flash_attention_paged(
                q,
                *(in_pages(x[0], order, block_len) for x in (k, v)),
                block_table=order[None, :n_pages],
                cache_seqlens=[130],
                **options,
            )
            assert same_bits(got, want)


@backends
@dtypes
def test_pages_may_be_shared(backend, dtype):
    q, k, v = draw(dtype, (2, 1, 4, 8), (6, 4, 2, 8), (6, 4, 2, 8))
    shared = flashlib.flash_attention_paged(
        q,
        k,
        v,
        block_table=[[3, 1, 0], [3, 1, 5]],
        cache_seqlens=[9, 12],
        backend=backend,
    )
    for b, table in enumerate(([3, 1, 0], [3, 1, 5])):
        alone = flashlib.flash_attention_paged(
            q[b : b + 1],
            k,
            v,
            block_table=[table],
            cache_seqlens=[(9, 12)[b]],
            backend=backend,
        )
        assert same_bits(
            alone, AttentionOutput(shared.out[b : b + 1], shared.lse[b : b + 1])
        )


@backends
@dtypes
@pytest.mark.parametrize("n_heads, n_kv_heads", [(6, 2), (5, 1), (32, 1)])
def test_grouped_heads_equal_repeated_ones(backend, dtype, n_heads, n_kv_heads):
    q, k, v = draw(
        dtype, (1, 2, n_heads, 20), (1, 90, n_kv_heads, 20), (1, 90, n_kv_heads, 9)
    )
    sink = np.linspace(-1, 1, n_heads).astype(dtype)
    options = {"cache_seqlens": [83], "window": 70, "sink": sink, "backend": backend}
    many = (repeat_kv(x[0], n_heads // n_kv_heads)[None] for x in (k, v))
    assert same_bits(
        flashlib.flash_attention_decode(q, k, v, **options),
        flashlib.flash_attention_decode(q, *many, **options),
    )


def strided(x, how):
    """The same numbers in another layout."""
    if how == "fortran":
        return np.asfortranarray(x)
    if how == "every second":
        wide = np.full((*x.shape[:-1], 2 * x.shape[-1]), np.nan, x.dtype)
        wide[..., ::2] = x
        return wide[..., ::2]
    if how == "reversed":
        return np.ascontiguousarray(x[..., ::-1, :])[..., ::-1, :]
    if how == "heads first":
        return np.ascontiguousarray(x.swapaxes(-2, -3)).swapaxes(-2, -3)
    wide = np.full((x.shape[0], x.shape[1] + 3, *x.shape[2:]), np.nan, x.dtype)
    wide[:, 2:-1] = x
    return wide[:, 2:-1]


@backends
@dtypes
@pytest.mark.parametrize(
    "how", ["fortran", "every second", "reversed", "heads first", "a slice"]
)
def test_strides_of_a_cache(backend, dtype, how):
    q, k, v = draw(dtype, (2, 2, 4, 16), (2, 50, 2, 16), (2, 50, 2, 7))
    options = {"cache_seqlens": [50, 11], "backend": backend}
    want = flashlib.flash_attention_decode(q, k, v, **options)
    other = [strided(x, how) for x in (q, k, v)]
    for x in other:
        x.flags.writeable = False
    assert same_bits(flashlib.flash_attention_decode(*other, **options), want)
    table = np.array([[0], [1]])
    got = flashlib.flash_attention_paged(*other, block_table=table, **options)
    assert same_bits(got, want)


@backends
@dtypes
def test_stride_zero_and_odd_addresses(backend, dtype):
    (token,) = draw(dtype, (1, 1, 2, 16))
    k = np.broadcast_to(token, (2, 30, 2, 16))
    options = {"cache_seqlens": [30, 7], "backend": backend}
    q = np.ones((2, 1, 4, 16), dtype)
    want = flashlib.flash_attention_decode(q, k.copy(), k.copy(), **options)
    assert same_bits(flashlib.flash_attention_decode(q, k, k, **options), want)
    raw = bytearray(k.nbytes + 1)
    odd = np.ndarray(k.shape, dtype, raw, offset=1)
    odd[...] = k
    assert not odd.flags.aligned
    assert same_bits(flashlib.flash_attention_decode(q, odd, odd, **options), want)


@backends
@dtypes
def test_runs_repeat(backend, dtype):
    q, k, v = draw(dtype, (3, 2, 6, 20), (3, 600, 2, 20), (3, 600, 2, 9))
    options = {"cache_seqlens": [600, 5, 300], "backend": backend}
    first = flashlib.flash_attention_decode(q, k, v, **options)
    for _ in range(5):
        assert same_bits(flashlib.flash_attention_decode(q, k, v, **options), first)
