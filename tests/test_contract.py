"""The contract's checks hold over every attention function of the package."""

from functools import partial

import numpy as np
import pytest

import flashlib
from flashlib.contract import CHECKS, failures
from flashlib.contract.dense import dense
from flashlib.mutants import MUTANTS, PlainLoop


def wide(attention):
    """Hand float32 inputs on as float64."""

    def widened(q, k, v, **options):
        if q.dtype == np.float32:
            q, k, v = (x.astype(np.float64) for x in (q, k, v))
        return attention(q, k, v, **options)

    return widened


materialized = flashlib.materialized_attention
FUNCTIONS = {
    "plain loop": PlainLoop(),
    "plain loop, float64": wide(PlainLoop()),
    "materialized": materialized,
    "materialized, float64": wide(materialized),
    **{
        f"{backend}, tile {tile}": partial(
            flashlib.flash_attention, backend=backend, tile=tile
        )
        for backend in flashlib.available_backends()
        for tile in (None, 1, 3, 16, 64)
    },
    **{
        f"{backend}, float64": wide(partial(flashlib.flash_attention, backend=backend))
        for backend in flashlib.available_backends()
    },
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_check_holds(name):
    broken = failures(FUNCTIONS[name])
    if name.endswith("float64"):  # this one compares float16 with a run in float32
        del broken["half_in_half_out"]
    assert broken == {}


@pytest.mark.parametrize("name", CHECKS)
def test_every_check_catches_a_mutant(name):
    assert any(name in mutant.killed_by() for mutant in MUTANTS.values())


def test_failures_names_the_values():
    broken = failures(MUTANTS["off_by_one"].attention)["causal_square"]
    assert broken == "out has 0 at flat index 1; expected 0.5; 3 of 4 differ"


def test_failures_reports_what_was_raised():
    def attention(q, k, v, **options):
        raise TypeError("not today")

    assert set(failures(attention)) == set(CHECKS)
    assert failures(attention)["published"] == "raised TypeError: not today"


def test_rules_are_sentences():
    for check in CHECKS.values():
        assert check.rule[0].isupper() and check.rule.endswith("."), check.name


@pytest.mark.parametrize("seed", range(20))
def test_dense_agrees_with_the_oracle(seed):
    random = np.random.default_rng(seed)
    seq_q, seq_k = random.integers(1, 12, 2)
    n_kv_heads, group, width = random.integers(1, 4, 3)
    n_heads = n_kv_heads * group
    q = random.standard_normal((seq_q, n_heads, width)) * 4
    k, v = random.standard_normal((2, seq_k, n_kv_heads, width))
    options = {
        "causal": bool(seed % 2),
        "window": [None, 3, (2, 1), (None, 1)][seed % 4],
        "softcap": [None, 2.5][seed // 2 % 2],
        "scale": [None, -0.5, 0.0][seed % 3],
        "mask": random.random((n_heads, seq_q, seq_k)) < 0.7,
        "bias": random.standard_normal((n_heads, seq_q, seq_k)),
        "sink": [None, random.standard_normal(n_heads)][seed // 4 % 2],
    }
    got, want = dense(q, k, v, **options), materialized(q, k, v, **options)
    np.testing.assert_allclose(got.out, want.out, atol=1e-12)
    np.testing.assert_allclose(got.lse, want.lse, atol=1e-12)
