"""The materialized reference against arithmetic done by hand, and as oracle."""

import math

import ml_dtypes
import numpy as np
import pytest

from flashlib import materialized_attention
from flashlib.testing import (
    assert_accurate,
    error_report,
    error_units,
    make_qkv,
    oracle,
    pseudo_random,
    published_qkv,
    unit,
)

ROW = (1.0, 3.0, 2.0, 5.0, 4.0, 0.0)


def by_hand(q, k, v, scale=1.0, hidden=lambda h, i, j: False):
    """Attention with nothing but `math.fsum`, one output number at a time."""
    out = np.zeros((len(q), q.shape[1], v.shape[2]))
    lse = np.full(out.shape[:2], -np.inf)
    group = q.shape[1] // k.shape[1]
    for i, h in np.ndindex(*lse.shape):
        keys = [j for j in range(len(k)) if not hidden(h, i, j)]
        kv = h // group
        s = [scale * math.fsum(q[i, h] * k[j, kv]) for j in keys]
        if keys:
            m = max(s)
            p = [math.exp(x - m) for x in s]
            lse[i, h] = m + math.log(math.fsum(p))
            for d in range(v.shape[2]):
                numbers = (w * v[j, kv, d] for w, j in zip(p, keys, strict=True))
                out[i, h, d] = math.fsum(numbers) / math.fsum(p)
    return out, lse


def test_the_running_example():
    q, k = np.ones((1, 1, 1)), np.array(ROW).reshape(6, 1, 1)
    v = np.arange(12.0).reshape(6, 1, 2)
    result = materialized_attention(q, k, v)
    out, lse = by_hand(q, k, v)
    np.testing.assert_allclose(result.out, out, rtol=2e-16)
    np.testing.assert_allclose(result.lse, lse, rtol=2e-16)


def test_against_numbers_by_hand():
    q, k, v = (x.astype(np.float64) for x in make_qkv(5, 7, head_dim_v=3))
    result = materialized_attention(q, k, v, causal=True, scale=0.3)
    out, lse = by_hand(q, k, v, 0.3, lambda h, i, j: j > i + 2)
    np.testing.assert_allclose(result.out, out, rtol=1e-13)
    np.testing.assert_allclose(result.lse, lse, rtol=1e-13)
    mask = np.random.default_rng(3).random((4, 5, 7)) < 0.4
    result = materialized_attention(q, k, v, mask=mask)
    out, lse = by_hand(q, k, v, 8**-0.5, lambda h, i, j: not mask[h, i, j])
    np.testing.assert_allclose(result.out, out, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(result.lse, lse, rtol=1e-13)


def test_order_of_scale_cap_bias():
    one = np.ones((1, 1, 1))
    result = materialized_attention(
        one, 8 * one, one, scale=0.5, softcap=2.0, bias=np.array([[0.25]])
    )
    np.testing.assert_allclose(result.lse, 2 * math.tanh(4 / 2) + 0.25, rtol=1e-15)


@pytest.mark.parametrize(
    ("dtype", "out", "lse"),
    [
        (None, np.float32, np.float32),
        (np.float64, np.float64, np.float64),
        (np.float16, np.float16, np.float32),
        (ml_dtypes.bfloat16, ml_dtypes.bfloat16, np.float32),
        ("float32", np.float32, np.float32),
    ],
)
def test_dtype_converts_first(dtype, out, lse):
    q, k, v = make_qkv(3)
    result = materialized_attention(q, k, v, dtype=dtype)
    assert (result.out.dtype, result.lse.dtype) == (np.dtype(out), np.dtype(lse))
    converted = (x.astype(dtype or x.dtype) for x in (q, k, v))
    np.testing.assert_array_equal(result.out, materialized_attention(*converted).out)


def test_the_oracle_sees_more_digits():
    q, k, v = make_qkv(40, heat=3.0)
    error = error_units(materialized_attention(q, k, v), q, k, v)
    assert 0 < error < 400
    double = (x.astype(np.float64) for x in (q, k, v))
    np.testing.assert_array_equal(oracle(q, k, v).out, oracle(*double).out)


def test_the_unit_counts_attended_values_only():
    q, k, v = make_qkv(4, 6)
    v[:, 0], v[:, 1] = 1.0, 2.0
    v[5] = 100.0
    eps = np.finfo(np.float32).eps
    np.testing.assert_allclose(unit(q, k, v, mask=np.arange(6) < 5), 2 * eps)
    np.testing.assert_allclose(unit(q, k, v), 100 * eps)
    assert unit(q, k, v, mask=np.zeros(6, bool)) == 0
    half = (x.astype(ml_dtypes.bfloat16) for x in (q, k, v))
    assert unit(*half) == 100 * 2.0**-7


def test_the_rule_notices_what_is_wrong():
    q, k, v = make_qkv(20)
    good = materialized_attention(q, k, v)
    report = assert_accurate(good, q, k, v)
    assert report.ok and report.out == report.plain
    worst = good._replace(out=good.out + 10 * report.allowed)
    with pytest.raises(AssertionError, match="out has an error of"):
        assert_accurate(worst, q, k, v)
    with pytest.raises(AssertionError, match="lse uses"):
        assert_accurate(good._replace(lse=good.lse + 1e-4), q, k, v)
    lost = good._replace(out=np.where(good.out > 0, np.nan, good.out))
    assert error_report(lost, q, k, v).out == np.inf
    base2 = good._replace(lse=good.lse / np.log(2).astype(np.float32))
    assert not error_report(base2, q, k, v).ok


def test_inputs_repeat_and_fill_the_interval():
    first, again = make_qkv(5, seed=4), make_qkv(5, seed=4)
    for x, y in zip(first, again, strict=True):
        np.testing.assert_array_equal(x, y)
    x = pseudo_random(11, 100_000)
    assert x.dtype == np.float32 and -1 < x.min() < -0.9999 and 0.9999 < x.max() < 1
    counts, _ = np.histogram(x, 10, (-1, 1))
    assert abs(counts / 10_000 - 1).max() < 0.05
    assert abs(np.corrcoef(x[:-1], x[1:])[0, 1]) < 0.01
    assert abs(np.corrcoef(x, pseudo_random(12, 100_000))[0, 1]) < 0.01
    np.testing.assert_array_equal(x[:5], pseudo_random(11, 5))


def test_published_inputs():
    q, k, v = published_qkv(17, 1)
    assert (q.shape, k.shape, v.shape) == ((17, 16, 128), (17, 8, 128), (17, 8, 128))
    np.testing.assert_array_equal(q.ravel(), pseudo_random(12, q.size))
    np.testing.assert_array_equal(v.ravel(), pseudo_random(38, v.size))
