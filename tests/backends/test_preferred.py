"""Calls without a choice of algorithm run what the gate of the backend prefers."""

import numpy as np
import pytest

import flashlib
from flashlib.backends.base import Backend, Choice

RANDOM = np.random.default_rng(0)
Q, K, V = (RANDOM.standard_normal((2, 9, n, 4)) for n in (4, 2, 2))


class Either(Backend):
    """Prefers one algorithm, and notes which one ran."""

    name = "either"

    def __init__(self, algorithm):
        self.algorithm, self.ran = algorithm, []

    def preferred(self, problem):
        return Choice(self.algorithm, "for the test")

    def flash(self, *arguments):
        self.ran.append("flash")
        return super().flash(*arguments)

    def materialized(self, *arguments):
        self.ran.append("materialized")
        return super().materialized(*arguments)


def decode(backend):
    return flashlib.flash_attention_decode(
        Q[:, :1], K, V, cache_seqlens=[9, 5], backend=backend
    )


def paged(backend):
    table = [[1, 0, 2], [4, 5, 3]]
    pages = (x.reshape(6, 3, 2, 4) for x in (K, V))
    return flashlib.flash_attention_paged(
        Q[:, :1], *pages, block_table=table, cache_seqlens=[9, 5], backend=backend
    )


def varlen(backend):
    return flashlib.flash_attention_varlen(
        Q[0], K[0], V[0], cu_seqlens_q=[0, 4, 9], cu_seqlens_k=[0, 3, 9],
        backend=backend,
    )  # fmt: skip


def single(backend):
    one = flashlib.flash_attention(Q[0], K[0], V[0], causal=True, backend=backend)
    flashlib.flash_attention(Q[1], K[1], V[1], causal=True, backend=backend)
    return one


@pytest.mark.parametrize("call", [decode, paged, varlen, single])
@pytest.mark.parametrize("algorithm", ["flash", "materialized"])
def test_the_preference_of_the_backend_is_what_runs(call, algorithm):
    backend = Either(algorithm)
    result = call(backend)
    assert backend.ran == [algorithm] * 2
    for got, want in zip(result, call("numpy"), strict=True):
        np.testing.assert_allclose(got, want, atol=1e-14)


def test_parts_of_a_whole_matrix_are_the_whole_matrix():
    results = [
        flashlib.flash_attention_decode(
            Q[:, :1], K, V, cache_seqlens=[9, 5], num_splits=parts, backend="blas"
        )
        for parts in (None, 1, 4)
    ]
    for result in results[1:]:
        for one, other in zip(results[0], result, strict=True):
            assert one.tobytes() == other.tobytes()
