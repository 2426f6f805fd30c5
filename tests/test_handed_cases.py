"""Mistakes that other projects shipped, as tiny inputs with right results.

One test per case, named by its id; each runs over every way to compute it. The two
about processes and installs, h13 and h32, are in test_process.py. Cases of functions
that are not part of the package yet come with those functions.
"""

import numpy as np
import pytest
from ways import Way, same_bits, ways

import flashlib
from flashlib import AttentionOutput, DTypeError, ShapeError, merge_states
from flashlib.testing import assert_accurate, make_qkv, oracle

LN2, LN3 = 0.6931472, 1.0986123
INF, NAN = np.inf, np.nan
F, T = False, True


@pytest.fixture(params=ways(), ids=str)
def way(request) -> Way:
    return request.param


def close(got, want, tolerance=3e-7):
    want = np.asarray(want, np.float64)
    np.testing.assert_allclose(
        got.astype(np.float64).reshape(want.shape), want, rtol=tolerance, atol=0
    )


def check(result, out=None, lse=None):
    assert isinstance(result, AttentionOutput)
    if out is not None:
        close(result.out, out)
    if lse is not None:
        close(result.lse, lse)


def test_h01_junk_in_hidden_slots(way):
    q, v = way.col(1), way.col(1, 3, NAN, INF)
    seen = {"mask": [[T, T, F, F]], "scale": 1.0}
    clean = way(q, way.col(1, 1, 0, 0), way.col(1, 3, 0, 0), **seen)
    check(clean, [2], [1.6931472])
    for junk in (NAN, INF, -INF, 1e30):
        assert same_bits(way(q, way.col(1, 1, junk, junk), v, **seen), clean)


def test_h02_fully_masked_row(way):
    q, k, v = way.col(1), way.col(1, 2), way.col(10, 20)
    check(way(q, k, v, mask=[[F, F]]), [0], [-INF])
    check(way(q, k, v, bias=[[-INF, -INF]]), [0], [-INF])
    q2, k2 = np.zeros((1, 2, 1), way.dtype), way.zeros(2)
    both = way(q2, k2, v, mask=[[[F, F]], [[T, T]]])
    check(both, [0, 15], [-INF, LN2])


def test_h03_causal_is_aligned_at_the_last_key(way):
    result = way(way.zeros(2), way.ones(5), way.col(0, 1, 2, 3, 4), causal=True)
    check(result, [1.5, 2], np.log([4, 5]))


def test_h04_window_counts_self_and_sides_do_not(way):
    def run(rows, window):
        v = way.col(0, 1, 2, 3, 4)
        return way(way.zeros(rows), way.ones(5), v, causal=True, window=window).out

    close(run(5, 2), [0, 0.5, 1.5, 2.5, 3.5])
    close(run(5, (2, 0)), [0, 0.5, 1, 2, 3])
    close(run(2, 2), [2.5, 3.5])
    close(run(2, (2, 0)), [2, 3])


def test_h05_query_head_reads_its_kv_head(way):
    q, k = np.zeros((1, 4, 1), way.dtype), np.zeros((1, 2, 1), way.dtype)
    v = np.array([[[1], [2]]], way.dtype)
    check(way(q, k, v), [1, 1, 2, 2])


def test_h07_low_scores_are_ordinary_numbers(way):
    one = way(way.col(-20000), way.col(1, 0), way.col(1, 100), mask=[[T, F]], scale=1.0)
    assert one.out.item() == 1
    check(one, lse=[-20000])
    two = way(
        way.col(-20000, -20000), way.col(1, 0), way.col(1, 100), causal=True, scale=1.0
    )
    check(two, [1, 100], [-20000, 0])


def test_h08_guards_survive_fast_math(way):
    q = way.col(0, 0, NAN, 0, 0)
    result = way(q, way.ones(3), way.col(3, 6, 9), causal=True, scale=1.0)
    check(result, [0, 0, NAN, 4.5, 6], [-INF, -INF, NAN, LN2, LN3])


def test_h09_nan_that_is_attended_shows(way):
    one, two = way.col(1), way.col(1, 2)
    assert np.isnan(way(way.col(NAN), two, two).out).all()
    assert np.isnan(way(one, way.col(1, NAN), two).out).all()
    rows = way(way.col(0, NAN, 0), way.ones(3), way.col(2, 4, 6))
    check(rows, [4, NAN, 4])
    values = way(way.zeros(3), way.ones(3), way.col(2, 4, NAN), causal=True)
    check(values, [2, 3, NAN], [0, LN2, LN3])


def test_h10_softcap(way):
    four, cap = way.col(4), 2.0
    check(way(four, way.col(1), four, softcap=cap, scale=1.0), lse=[1.9280552])
    half = way(way.col(1), way.col(8), four, softcap=cap, scale=0.5)
    check(half, lse=[1.9280552])
    two = way(way.col(1), way.col(4, 0), way.col(1, 0), softcap=cap, scale=1.0)
    check(two, [0.8730339])


def test_h11_k_and_v_of_different_length(way):
    for n_keys, n_values in ((5, 6), (6, 5)):
        with pytest.raises(ShapeError, match=f"{n_keys} and {n_values} tokens"):
            way(way.zeros(1), way.zeros(n_keys), way.zeros(n_values))


@pytest.mark.parametrize("head_dim", (1, 3, 7, 8, 9, 63))
@pytest.mark.parametrize("backend", flashlib.available_backends())
@pytest.mark.parametrize("tile", (1, 2, 3, 5, 16, 64))
def test_h12_partial_last_tile(backend, tile, head_dim):
    for seq_k in {1, tile - 1, tile, tile + 1, 2 * tile - 1, 2 * tile + 1} - {0}:
        q, k, v = make_qkv(3, seq_k + 9, head_dim=head_dim, seed=seq_k)
        k[seq_k:], v[seq_k:] = NAN, NAN
        k, v = k[:seq_k], v[:seq_k]
        result = flashlib.flash_attention(q, k, v, backend=backend, tile=tile)
        assert_accurate(result, q, k, v)


@pytest.mark.parametrize("dtype", (np.float32, np.float64))
def test_h14_merge_of_states(dtype):
    def state(out, lse):
        return AttentionOutput(np.array([[[out]]], dtype), np.array([[lse]], dtype))

    empty = state(0, -INF)
    check(merge_states(empty, empty), [0], [-INF])
    check(merge_states(empty, state(5, LN3)), [5], [LN3])
    check(merge_states(state(5, LN3), empty), [5], [LN3])
    check(merge_states(state(1, 0), state(5, np.log(3))), [4], [np.log(4)])
    check(merge_states(state(2, -6e4), state(3, 6e4)), [3], [6e4])


def test_h15_sink_feeds_the_denominator_once(way):
    q, one = way.zeros(1), way.ones
    check(way(q, one(2), one(2), sink=[1.0]), [0.4238831], [1.5514447])
    check(way(q, one(3), one(3), sink=[-1.0]), [0.8907682])
    check(way(q, one(2), one(2), sink=[1.0], mask=[[F, F]]), [0], [1])


def test_h16_a_finite_bias_does_not_mask(way):
    def run(bias):
        return way(way.zeros(1), way.ones(2), way.col(7, 9), bias=bias).out.item()

    assert run([[0.0, -INF]]) == 7
    assert run([[0.0, -3.4e38]]) == 7
    assert run([[-1e38, -1e38]]) == 8


def test_h17_a_mask_of_numbers_is_refused(way):
    for dtype in (np.int32, np.uint8, np.float32):
        with pytest.raises(DTypeError, match=r"mask.*bool.*bias"):
            way(
                way.zeros(1),
                way.ones(2),
                way.col(10, 20),
                mask=np.array([[1, 0]], dtype),
            )


def test_h18_a_mask_that_broadcasts_along_the_keys(way):
    k, v = way.ones(2), way.col(1, 3)
    check(way(way.zeros(2), k, v, mask=[[T], [F]]), [2, 0], [LN2, -INF])
    q = np.zeros((2, 2, 1), way.dtype)
    check(way(q, k, v, mask=[[[F]], [[T]]]), [[0, 2], [0, 2]])


def test_h21_a_window_over_a_whole_prompt(way):
    six = way(way.zeros(6), way.ones(6), way.col(*range(6)), causal=True, window=4)
    check(six, [0, 0.5, 1, 1.5, 2.5, 3.5])


def test_h23_a_bias_by_position(way):
    bias = -abs(3.0 - np.arange(4.0))[None]
    for causal in (False, True):
        result = way(
            way.zeros(1), way.ones(4), way.col(0, 1, 2, 3), bias=bias, causal=causal
        )
        check(result, [2.4926527])


def strided(x):
    """Yield views that hold the numbers of x in another layout."""
    yield np.swapaxes(np.ascontiguousarray(np.swapaxes(x, 0, 1)), 0, 1)
    yield np.repeat(x, 2, axis=0)[::2]
    yield np.ascontiguousarray(x[::-1])[::-1]
    yield np.ascontiguousarray(x[:, ::-1])[:, ::-1]
    yield np.ascontiguousarray(x[..., ::-1])[..., ::-1]
    yield np.asfortranarray(x)
    wide = np.full((*x.shape[:-1], x.shape[-1] + 5), np.nan, np.float64).astype(x.dtype)
    wide[..., 2:-3] = x
    yield wide[..., 2:-3]
    raw = bytearray(x.nbytes + 1)
    odd = np.frombuffer(raw, x.dtype, x.size, offset=1).reshape(x.shape)
    odd[...] = x
    yield odd


@pytest.mark.parametrize("way", ways((None, 3)), ids=str)
def test_h25_strides_change_no_bit(way):
    q, k, v = make_qkv(9, 11, head_dim=17, head_dim_v=5, dtype=way.dtype)
    random = np.random.default_rng(0)
    mask = random.random((4, 9, 11)) < 0.7
    bias = random.standard_normal((4, 9, 11)).astype(way.dtype)
    options = {"mask": mask, "bias": bias, "causal": True}
    plain = way(q, k, v, **options)
    for views in zip(*map(strided, (q, k, v, mask, bias)), strict=True):
        q_view, k_view, v_view, *data = views
        options = dict(zip(("mask", "bias"), data, strict=True), causal=True)
        assert same_bits(way(q_view, k_view, v_view, **options), plain)


@pytest.mark.parametrize("way", ways((None, 3)), ids=str)
def test_h25_stride_zero_changes_no_bit(way):
    q, k, v = make_qkv(5, 7, dtype=way.dtype)
    q, k, v = (np.broadcast_to(x[:1], x.shape) for x in (q, k, v))
    mask = np.broadcast_to(np.arange(7) % 3 > 0, (4, 5, 7))
    bias = np.broadcast_to(np.linspace(0, 1, 5, dtype=way.dtype)[:, None], (4, 5, 7))
    copies = (x.copy() for x in (q, k, v))
    plain = way(*copies, mask=mask.copy(), bias=bias.copy())
    assert same_bits(way(q, k, v, mask=mask, bias=bias), plain)


@pytest.mark.parametrize("way", ways((None, 3)), ids=str)
def test_h26_float16_read_only_sliced_and_swapped(way):
    q, k, v = make_qkv(4, 6, dtype=np.float16)
    half = way(q, k, v, causal=True)
    want = oracle(q, k, v, causal=True)
    assert half.out.dtype == np.float16
    np.testing.assert_allclose(half.out, want.out, atol=2e-3)
    q, k, v = make_qkv(8, 12, dtype=way.dtype)
    plain = way(q[::2].copy(), k[::2].copy(), v[::2].copy())
    for x in (q, k, v):
        x.flags.writeable = False
    assert same_bits(way(q[::2], k[::2], v[::2]), plain)
    swapped = q.dtype.newbyteorder()
    with pytest.raises(DTypeError, match="native byte order"):
        way(q.astype(swapped), k.astype(swapped), v.astype(swapped))


def test_h27_overflow_and_negative_scale(way):
    def run(q, k, v, scale=1.0):
        return way(way.col(q), way.col(*k), way.col(*v), scale=scale).out

    close(run(1, (1000, 999), (1, 0)), [0.7310586])
    close(run(1, (-1000, -1001), (1, 0)), [0.7310586])
    close(run(1, (1, 2), (1, 3), scale=-1.0), [1.5378828])
    close(run(1, (0, 5, -3, 50), (1, 2, 3, 4)), [4])
    close(run(1, (1, 2), (1, 3), scale=0.0), [2])


@pytest.mark.parametrize("backend", flashlib.available_backends())
@pytest.mark.parametrize("dtype", (np.float32, np.float64))
@pytest.mark.parametrize(
    ("seq_q", "seq_k", "tiles"), ((2, 4100, (16, 64, 5000)), (4100, 5, (1, 2, 64)))
)
def test_h30_scratch_fits_every_tile(backend, dtype, seq_q, seq_k, tiles):
    way = Way(backend, None, dtype)
    v, causal = way.col(*range(seq_k)), seq_k > seq_q
    want = [2049, 2049.5] if causal else np.full(seq_q, 2)
    for tile in tiles:
        result = way(way.zeros(seq_q), way.ones(seq_k), v, causal=causal, tile=tile)
        close(result.out, want, 3e-5 if dtype == np.float32 else 1e-12)


def test_h31_exp_is_exact_where_it_must_be(way):
    q, k, v = make_qkv(5, head_dim=3, dtype=way.dtype)
    expected = np.repeat(v, 2, axis=1)
    assert (way(q, k, v, window=(0, 0)).out == expected).all()
    assert (way(q, k, v, mask=np.eye(5, dtype=bool)).out == expected).all()
    two = way.ones(2)
    huge = way(way.zeros(1), two, way.col(1, 3e38), bias=[[0.0, -INF]])
    assert huge.out.item() == 1
    for low in (-100, -1e4, -3e38):
        result = way(way.col(1), way.col(0, low), way.col(0, 1), scale=1.0)
        assert 0 <= result.out.item() < 1e-30


def test_h33_rows_before_the_first_key(way):
    q, k = np.ones((40, 4, 2), way.dtype), np.ones((3, 2, 2), way.dtype)
    result = way(q, k, k, causal=True)
    assert (result.out[:37] == 0).all() and (result.lse[:37] == -INF).all()
    close(result.out[37:], np.ones((3, 4, 2)))
