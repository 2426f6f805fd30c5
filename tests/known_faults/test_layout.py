"""Faults in heads, lengths, strides and types."""

import numpy as np
import pytest
from known_faults.near import check
from ways import same_bits, ways

from flashlib import DTypeError, ShapeError
from flashlib.testing import make_qkv, oracle


def test_h05_query_head_reads_its_kv_head(way):
    """Query heads share KV heads group by group, not in turns.

    Seen in onnx pull 7274, jax-js pull 180.
    """
    q, k = np.zeros((1, 4, 1), way.dtype), np.zeros((1, 2, 1), way.dtype)
    v = np.array([[[1], [2]]], way.dtype)
    check(way(q, k, v), [1, 1, 2, 2])


def test_h11_k_and_v_of_different_length(way):
    """k and v have equal lengths; neither is trusted for both.

    Seen in pytorch pull 193728.
    """
    for n_keys, n_values in ((5, 6), (6, 5)):
        with pytest.raises(ShapeError, match=f"{n_keys} and {n_values} tokens"):
            way(way.zeros(1), way.zeros(n_keys), way.zeros(n_values))


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
    """Arrays are read by their strides.

    Seen in pytorch#133671, pytorch#191937.
    """
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
    """A stride may be 0.

    Seen in pytorch#133671, pytorch#191937.
    """
    q, k, v = make_qkv(5, 7, dtype=way.dtype)
    q, k, v = (np.broadcast_to(x[:1], x.shape) for x in (q, k, v))
    mask = np.broadcast_to(np.arange(7) % 3 > 0, (4, 5, 7))
    bias = np.broadcast_to(np.linspace(0, 1, 5, dtype=way.dtype)[:, None], (4, 5, 7))
    copies = (x.copy() for x in (q, k, v))
    plain = way(*copies, mask=mask.copy(), bias=bias.copy())
    assert same_bits(way(q, k, v, mask=mask, bias=bias), plain)


@pytest.mark.parametrize("way", ways((None, 3)), ids=str)
def test_h26_float16_read_only_sliced_and_swapped(way):
    """What cannot be computed with is refused in words, not by the compiler.

    Seen in the documentation of Numba.
    """
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
