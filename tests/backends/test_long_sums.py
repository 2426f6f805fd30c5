"""Long sums: many keys and wide heads, whose rounding errors must not pile up."""

from functools import cache

import numpy as np
import pytest

import flashlib
from flashlib.backends.numpy_tiles import attend_in_tiles
from flashlib.problem import attention_problem
from flashlib.testing import error_report

BACKENDS = flashlib.available_backends()


def positive(random, *shape):
    """Return numbers in [1, 2), which a sum cannot cancel."""
    return random.uniform(1, 2, shape).astype(np.float32)


def one_above(n, value):
    """Return keys of width 1: the first scores 0, the others -0.7; and values."""
    k = np.full((n, 1, 1), -0.7, np.float32)
    k[0] = 0
    v = positive(np.random.default_rng(n), n, 1, 3)
    return np.ones((1, 1, 1), np.float32), k, v if value is None else v * 0 + value


def late_peak(n):
    """Return keys of width 1 with scores in [-1, 0], and a last one that is 25."""
    random = np.random.default_rng(n)
    k = -random.random((n, 1, 1))
    k[-1] = 25
    v = positive(random, n, 1, 2)
    return np.ones((1, 1, 1)), k, v, {"scale": 1.0}


@cache
def calls():
    """Return calls by name: q, k, v and options."""
    random = np.random.default_rng(0)
    normal = random.standard_normal
    v = positive(random, 4096, 1, 16)
    found = {
        "equal scores": (normal((2, 1, 4)) * 0, normal((4096, 1, 4)), v, {}),
        "normal scores": (normal((3, 1, 4)), normal((4096, 1, 4)), v, {}),
        "constant values": (normal((3, 1, 4)), normal((4096, 1, 4)), v * 0 + 1.1, {}),
        "20,000 keys": (*one_above(20_000, None), {"scale": 1.0}),
        "200,000 equal scores": (
            normal((1, 1, 4)) * 0,
            normal((200_000, 1, 4)),
            positive(random, 200_000, 1, 4),
            {},
        ),
        "4,000 keys, then one at 25": late_peak(4000),
        "100,000 keys, then one at 25": late_peak(100_000),
        "20,000 constants": (*one_above(20_000, 1.1), {"scale": 1.0}),
    }
    for head_dim in (512, 2048):
        q, k = positive(random, 3, 1, head_dim), positive(random, 70, 1, head_dim)
        v = normal((70, 1, 4))
        found[f"width {head_dim}"] = (q, k, v, {})
        found[f"hot width {head_dim}"] = (q, k, v, {"scale": 4 / head_dim**0.5})
    narrow = np.float32
    return {
        name: (*(x.astype(narrow) for x in call[:3]), call[3])
        for name, call in found.items()
    }


NAMES = calls().keys()


def assert_within_the_rule(result, q, k, v, options):
    report = error_report(result, q, k, v, **options)
    assert report.ok, report


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("tile", (None, 1, 7, 1000))
@pytest.mark.parametrize("backend", BACKENDS)
def test_prefill(backend, tile, name):
    q, k, v, options = calls()[name]
    result = flashlib.flash_attention(q, k, v, backend=backend, tile=tile, **options)
    assert_within_the_rule(result, q, k, v, options)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("num_splits", (None, 1, 5, 4000))
@pytest.mark.parametrize("backend", BACKENDS)
def test_decode(backend, num_splits, name):
    q, k, v, options = calls()[name]
    out, lse = flashlib.flash_attention_decode(
        q[None],
        k[None],
        v[None],
        cache_seqlens=[len(k)],
        causal=False,
        num_splits=num_splits,
        backend=backend,
        **options,
    )
    result = flashlib.AttentionOutput(out[0], lse[0])
    assert_within_the_rule(result, q, k, v, options)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_stretch_does_not_forget_what_was_before(backend):
    random = np.random.default_rng(5)
    n = 9000
    q = random.standard_normal((3, 2, 4), np.float32)
    k, v = random.standard_normal((2, n, 1, 4), np.float32)
    mask = np.ones((3, n), bool)
    mask[0, :8500] = False  # nothing in the first two stretches
    mask[1, 300:] = False  # nothing but in the first one
    rising = k * np.linspace(0, 6, n, dtype=np.float32)[:, None, None]
    for keys in (k, rising, rising[::-1]):
        for options in (
            {"mask": mask},
            {"causal": True, "window": 5000},
            {"sink": np.float32([3, -np.inf])},
        ):
            result = flashlib.flash_attention(q, keys, v, backend=backend, **options)
            assert_within_the_rule(result, q, keys, v, options)


def test_light_tiles_behind_a_heavy_one_are_not_lost_one_by_one():
    """Each is too small for the sum of the first, not so a chain of them."""
    k = np.full((4096, 1, 1), -17.5, np.float32)  # e**-17.5 is below half an epsilon
    k[0] = 0
    one = np.ones((1, 1, 1), np.float32)
    problem, tensors = attention_problem(one, k, np.ones_like(k), scale=1.0)
    _, lse = attend_in_tiles(problem, *tensors, tile=1)
    np.testing.assert_allclose(lse, np.log1p(4095 * np.exp(-17.5)), atol=1e-5)
