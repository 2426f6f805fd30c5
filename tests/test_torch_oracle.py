"""PyTorch's scaled_dot_product_attention as an outside oracle, in float64."""

import numpy as np
import pytest
from conftest import require
from ways import Way

import flashlib
from flashlib.layout import repeat_kv
from flashlib.masks import as_dense, causal_mask
from flashlib.problem import attention_problem
from flashlib.testing import assert_accurate, make_qkv, oracle

WAYS = [
    Way(name, tile, dtype)
    for name, tile in [("materialized", None)]
    + [(name, tile) for name in flashlib.available_backends() for tile in (None, 5)]
    for dtype in (np.float32, np.float64)
]

SIZES = [(1, 1, 1, 1, 8), (17, 17, 4, 2, 16), (65, 65, 16, 8, 128), (5, 70, 6, 2, 9)]


def sdpa(q, k, v, mask=None, scale=None):
    """The same call in PyTorch, ``[seq, heads, width]`` in and out, float64."""
    torch = require("torch")
    group = q.shape[1] // k.shape[1]
    arrays = q, repeat_kv(k, group), repeat_kv(v, group)
    q, k, v = (torch.from_numpy(x.astype(np.float64)).transpose(0, 1) for x in arrays)
    if mask is not None:
        mask = torch.from_numpy(np.ascontiguousarray(mask))
    out = torch.nn.functional.scaled_dot_product_attention(
        q[None], k[None], v[None], attn_mask=mask, scale=scale
    )
    return out[0].transpose(0, 1).numpy()


def agree(result, want, q, k, v, **options):
    """PyTorch confirms the oracle, and the oracle judges the result."""
    np.testing.assert_allclose(oracle(q, k, v, **options).out, want, atol=1e-13)
    assert_accurate(result, q, k, v, **options)


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_plain_and_scaled(way, sizes):
    q, k, v = inputs(sizes, way.dtype)
    for scale in (None, 0.5, -0.25):
        agree(
            way(q, k, v, scale=scale), sdpa(q, k, v, scale=scale), q, k, v, scale=scale
        )


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_causal_is_an_explicit_mask(way, sizes):
    q, k, v = inputs(sizes, way.dtype)
    want = sdpa(q, k, v, causal_mask(len(q), len(k)))
    agree(way(q, k, v, causal=True), want, q, k, v, causal=True)


@pytest.mark.parametrize("window", (1, 3, (2, 1), (None, 2), (4, None)), ids=str)
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_window(way, window):
    q, k, v = inputs(SIZES[1], way.dtype)
    problem, _ = attention_problem(q, k, v, window=window)
    want = sdpa(q, k, v, as_dense(problem))
    agree(way(q, k, v, window=window), want, q, k, v, window=window)


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_mask_and_bias(way):
    q, k, v = inputs(SIZES[3], way.dtype)
    random = np.random.default_rng(1)
    mask = random.random((6, 5, 70)) < 0.5
    agree(way(q, k, v, mask=mask), sdpa(q, k, v, mask), q, k, v, mask=mask)
    bias = random.standard_normal((5, 70)).astype(way.dtype)
    want = sdpa(q, k, v, bias.astype(np.float64))
    agree(way(q, k, v, bias=bias), want, q, k, v, bias=bias)


def inputs(sizes, dtype):
    seq_q, seq_k, n_heads, n_kv_heads, head_dim = sizes
    return make_qkv(
        seq_q,
        seq_k,
        n_heads=n_heads,
        n_kv_heads=n_kv_heads,
        head_dim=head_dim,
        dtype=dtype,
        seed=sum(sizes),
    )
