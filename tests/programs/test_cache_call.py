"""One cache in every layout gives one answer."""

import numpy as np
import pytest

from flashlib.errors import ArgumentError
from flashlib.programs.cache_call import (
    cache_arguments,
    decode_cached,
    decode_slots,
    to_pages,
)
from flashlib.reference import materialized_attention


def rows(batch=2, heads=3, seq=2, slots=512, d=16):
    rng = np.random.default_rng(7)
    q = rng.standard_normal((batch, heads, seq, d)).astype(np.float32)
    k, v = rng.standard_normal((2, batch, slots, d)).astype(np.float32)
    return q, k, v


LAYOUTS = [
    {},
    {"cache": "columns"},
    {"strided": False},
    {"bucket": 1024},
    {"cache": "pages"},
    {"cache": "pages", "block_len": 32, "seed": 3},
    {"tile": 128},
    {"lnc": 2},
    {"cache": "pages", "block_len": 2, "lnc": 2, "tile": 128},
]


@pytest.mark.parametrize("how", LAYOUTS, ids=str)
def test_every_layout_equals_the_oracle(how):
    q, k, v = rows()
    got = decode_cached(q, k, v, **how).out
    for b in range(len(q)):
        x = (q[b].transpose(1, 0, 2), k[b][:, None], v[b][:, None])
        want = materialized_attention(*x, causal=True, scale=1.0, dtype=np.float64)
        np.testing.assert_allclose(got[b].transpose(2, 0, 1), want.out, atol=2e-6)


def test_steps_are_those_of_all_cores():
    result = decode_cached(*rows(), lnc=2)
    first, second = (t.histogram(by=("step", "op")) for t in result.traces)
    found = result.steps()
    assert found.keys() == first.keys() | second.keys()
    assert all(n == first.get(k, 0) + second.get(k, 0) for k, n in found.items())


CAUSAL = np.tri(2, dtype=bool)
ONE_SEQUENCE = {
    "as they come": ({}, CAUSAL),
    "longer cache": ({"slots": 384}, CAUSAL),
    "two cores": ({"lnc": 2}, CAUSAL),
    "own mask": ({"active_mask": np.eye(2, dtype=bool)}, np.eye(2, dtype=bool)),
}


@pytest.mark.parametrize("how, active", ONE_SEQUENCE.values(), ids=ONE_SEQUENCE)
def test_one_sequence_equals_the_oracle(how, active):
    rng = np.random.default_rng(3)
    q = rng.standard_normal((2, 3, 16)).astype(np.float32)
    k, v = rng.standard_normal((2, 200, 1, 16)).astype(np.float32)
    keeps = np.ones((2, 200), bool)
    keeps[:, 198:] = active
    want = materialized_attention(q, k, v, mask=keeps, dtype=np.float64).out
    np.testing.assert_allclose(decode_slots(q, k, v, **how).out, want, atol=2e-6)


def test_a_given_mask_says_which_slots_are_attended():
    rng = np.random.default_rng(3)
    q = rng.standard_normal((2, 3, 16)).astype(np.float32)
    k, v = rng.standard_normal((2, 256, 1, 16)).astype(np.float32)
    mask = rng.random((3, 2, 256)) < 0.5
    want = materialized_attention(q, k, v, mask=mask, dtype=np.float64).out
    got = decode_slots(q, k, v, mask=mask).out
    np.testing.assert_allclose(got, want, atol=2e-6)


def test_pages_hold_every_row_once():
    _, k, v = rows()
    table, pools = to_pages((k, v), 16, seed=1)
    assert table.shape == (2, 32) and len(np.unique(table)) == table.size
    for x, pool in zip((k, v), pools, strict=True):
        np.testing.assert_array_equal(pool[table].reshape(x.shape), x)


def test_unknown_cache_is_refused():
    with pytest.raises(ArgumentError, match="cache has 'ring'; expected one of rows"):
        cache_arguments(*rows(), cache="ring")
