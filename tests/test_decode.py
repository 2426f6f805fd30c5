"""Decode steps, cached or in pages: what is refused, and what is legal."""

import re

import numpy as np
import pytest
from cached_ways import BatchRow, engines
from conftest import require

import flashlib
from flashlib import ArgumentError, DTypeError, ShapeError
from flashlib.testing import make_qkv

Q = np.zeros((2, 1, 4, 8), np.float32)
CACHE = np.zeros((2, 6, 2, 8), np.float32)
backends = pytest.mark.parametrize("backend", engines())


def decode(q=Q, k=CACHE, v=CACHE, cache_seqlens=(3, 6), **options):
    return flashlib.flash_attention_decode(
        q, k, v, cache_seqlens=cache_seqlens, **options
    )


def paged(q=Q, k=CACHE, v=CACHE, block_table=((0,), (1,)), cache_seqlens=(3, 6)):
    return flashlib.flash_attention_paged(
        q, k, v, block_table=block_table, cache_seqlens=cache_seqlens
    )


REFUSED = [
    (decode, {"cache_seqlens": [-1, 3]}, ArgumentError, "cache_seqlens[0] has -1"),
    (decode, {"cache_seqlens": [3, 7]}, ArgumentError, "cache_seqlens[1] has 7"),
    (decode, {"cache_seqlens": [0, 3]}, ArgumentError, "at least seq_new = 1"),
    (decode, {"cache_seqlens": [3]}, ShapeError, "cache_seqlens has 1 entries"),
    (decode, {"cache_seqlens": [[3, 3]]}, ShapeError, "expected rank 1"),
    (decode, {"cache_seqlens": [3.0, 3.0]}, DTypeError, "expected integers"),
    (decode, {"cache_seqlens": [True, True]}, DTypeError, "expected integers"),
    (decode, {"num_splits": 0}, ArgumentError, "num_splits has 0"),
    (decode, {"num_splits": 1.5}, ArgumentError, "num_splits has 1.5"),
    (decode, {"num_splits": -(2**63)}, ArgumentError, "num_splits has -922337203685"),
    (decode, {"num_splits": np.ones((9, 2))}, ArgumentError, "num_splits has array("),
    (decode, {"window": 0}, ArgumentError, "window has 0"),
    (decode, {"softcap": -1.0}, ArgumentError, "softcap has -1.0"),
    (decode, {"sink": np.zeros(3, np.float32)}, ShapeError, "sink has shape (3,)"),
    (decode, {"backend": "cuda"}, ArgumentError, "backend has 'cuda'"),
    (decode, {"q": Q[0]}, ShapeError, "[batch, seq_new, n_heads, head_dim]"),
    (decode, {"q": Q[:1]}, ShapeError, "equal batch"),
    (decode, {"q": Q[:, :, :3]}, ShapeError, "multiple of n_kv_heads = 2"),
    (decode, {"q": Q[..., :7]}, ShapeError, "equal head_dim"),
    (decode, {"q": Q.astype(np.float64)}, DTypeError, "expected one dtype"),
    (decode, {"q": Q.astype(np.int32)}, DTypeError, "q has dtype int32"),
    (decode, {"v": CACHE[:, :5]}, ShapeError, "k_cache and v_cache"),
    (decode, {"v": CACHE[:, :, :1]}, ShapeError, "n_kv_heads"),
    (paged, {"block_table": [[0], [2]]}, ArgumentError, "block_table[1, 0] has 2"),
    (paged, {"block_table": [[0], [-1]]}, ArgumentError, "block_table[1, 0] has -1"),
    (paged, {"block_table": [[0]]}, ShapeError, "block_table has 1 rows"),
    (paged, {"block_table": [0, 1]}, ShapeError, "expected rank 2"),
    (paged, {"block_table": [[0.0], [1.0]]}, DTypeError, "expected integers"),
    (paged, {"block_table": [[0], []]}, ShapeError, "rows of different lengths"),
    (paged, {"cache_seqlens": [3, 7]}, ArgumentError, "max_blocks * block_len"),
    (paged, {"k": CACHE[:, :0], "v": CACHE[:, :0]}, ShapeError, "block_len >= 1"),
]


@pytest.mark.parametrize(
    "case", REFUSED, ids=lambda case: f"{case[0].__name__}-{case[3]}"
)
def test_refused(case):
    function, arguments, error, message = case
    with pytest.raises(error, match=re.escape(message)) as caught:
        function(**arguments)
    text = str(caught.value)
    assert "\n" not in text and text[0] == text[0].lower()


def test_integer_types_do_not_matter():
    want = paged()
    for kind in (np.int8, np.uint8, np.int32, np.uint64):
        got = paged(
            block_table=np.array([[0], [1]], kind),
            cache_seqlens=np.array([3, 6], kind),
        )
        assert got.out.tobytes() == want.out.tobytes()


def test_nothing_to_do_is_legal():
    empty = decode(Q[:0], CACHE[:0], CACHE[:0], [])
    assert empty.out.shape == (0, 1, 4, 8) and empty.lse.shape == (0, 1, 4)
    none = decode(Q[:, :0], cache_seqlens=[0, 3])
    assert none.out.shape == (2, 0, 4, 8)


@backends
def test_any_number_of_splits_is_legal(backend):
    random = np.random.default_rng(0)
    q, k, v = (
        random.standard_normal((1, n, h, 8), np.float32)
        for n, h in ((1, 4), (90, 2), (90, 2))
    )
    want = decode(q, k, v, cache_seqlens=[90], backend=backend)
    for num_splits in (1, 64, 65, 2**31, 2**63, 2**80):
        got = decode(
            q, k, v, cache_seqlens=[90], num_splits=num_splits, backend=backend
        )
        np.testing.assert_allclose(got.out, want.out, atol=1e-6)


SIZES = {
    "no columns of q": (2, 3, 4, 2, 0, 5),
    "no columns of v": (2, 3, 4, 2, 5, 0),
    "no columns": (2, 3, 4, 2, 0, 0),
    "no heads": (2, 3, 0, 0, 5, 5),
    "no query heads": (2, 3, 0, 2, 5, 5),
    "no new token": (2, 0, 4, 2, 5, 5),
    "no sequence": (0, 3, 4, 2, 5, 5),
}


@pytest.mark.parametrize("num_splits", (None, 3))
@pytest.mark.parametrize("name", SIZES)
@backends
def test_sizes_of_zero(backend, name, num_splits):
    batch, seq_new, n_heads, n_kv_heads, head_dim, head_dim_v = SIZES[name]
    q = np.ones((batch, seq_new, n_heads, head_dim), np.float32)
    k = np.ones((batch, 6, n_kv_heads, head_dim), np.float32)
    v = np.ones((batch, 6, n_kv_heads, head_dim_v), np.float32)
    options = {
        "cache_seqlens": np.full(batch, 5), "num_splits": num_splits,
        "backend": backend, "causal": False,
    }  # fmt: skip
    table = np.arange(3 * batch).reshape(batch, 3)
    pages = [x.reshape(3 * batch, 2, *x.shape[2:]) for x in (k, v)]
    for got in (
        flashlib.flash_attention_decode(q, k, v, **options),
        flashlib.flash_attention_paged(q, *pages, block_table=table, **options),
    ):
        assert got.out.shape == (batch, seq_new, n_heads, head_dim_v)
        np.testing.assert_allclose(got.out, 1, rtol=1e-6)
        np.testing.assert_allclose(got.lse, np.log(5) + head_dim**0.5, rtol=1e-6)
    if batch:
        got = flashlib.flash_attention(q[0], k[0], v[0], backend=backend)
        assert got.out.shape == (seq_new, n_heads, head_dim_v)


@backends
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_decode_step_is_the_last_row_of_prefill(backend, dtype):
    q, k, v = make_qkv(200, n_heads=6, n_kv_heads=2, head_dim=32, dtype=dtype)
    whole = flashlib.flash_attention(q, k, v, causal=True, backend=backend)
    tolerance = 8 * np.finfo(dtype).eps
    for length in (1, 2, 65, 128, 200):
        step = flashlib.flash_attention_decode(
            q[None, length - 1 : length],
            k[None],
            v[None],
            cache_seqlens=[length],
            backend=backend,
        )
        row = whole.out[length - 1], whole.lse[length - 1]
        for got, want in zip((step.out[0, 0], step.lse[0, 0]), row, strict=True):
            np.testing.assert_allclose(got, want, atol=tolerance * 8, rtol=tolerance)


@backends
def test_half_types_come_back_as_they_were(backend):
    ml_dtypes = require("ml_dtypes")
    for dtype in (np.float16, ml_dtypes.bfloat16):
        q, k, v = make_qkv(1, 40, dtype=dtype)
        got = BatchRow(backend)(q, k, v)
        wide = BatchRow(backend)(*(x.astype(np.float32) for x in (q, k, v)))
        assert got.out.dtype == dtype and got.lse.dtype == np.float32
        assert np.array_equal(got.out, wide.out.astype(dtype))
        assert np.array_equal(got.lse, wide.lse)


@backends
def test_attended_scores_of_minus_infinity_are_no_number(backend):
    """All weight is 0 / 0, as on paper; a cache without such keys is untouched."""
    k = np.array([-np.inf, -np.inf, 1], np.float32).reshape(1, 3, 1, 1)
    one = np.ones((1, 1, 1, 1), np.float32)
    for length, want in ((2, np.nan), (3, 1.0)):
        got = flashlib.flash_attention_decode(
            one, k, np.ones_like(k), cache_seqlens=[length], backend=backend
        )
        np.testing.assert_equal(got.out.item(), want)
