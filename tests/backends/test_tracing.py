"""What `Tracing` counts, and that it changes nothing."""

import inspect

import numpy as np
import pytest
from ways import same_bits

import flashlib
from flashlib import ArgumentError, Backend, Refused, Tracing, get_backend
from flashlib.testing import make_qkv

PUBLIC = [
    name
    for name, member in vars(Backend).items()
    if inspect.isfunction(member) and not name.startswith("_")
]
# Asked before anything runs, and no operation.
QUESTIONS = ("refusal", "preferred")


def test_the_methods_are_found():
    assert {"choose", "prefill", "flash", "materialized", "in_parts"} < set(PUBLIC)


@pytest.mark.parametrize("name", PUBLIC)
def test_no_method_answers_for_its_inner_backend(name):
    inner, answer, asked = Backend(), object(), []
    signature = inspect.signature(getattr(inner, name))

    def reply(*arguments, **options):
        asked.append(signature.bind(*arguments, **options).arguments)
        return answer

    setattr(inner, name, reply)
    traced = Tracing(inner)
    assert name in vars(Tracing)
    assert inspect.signature(getattr(traced, name)) == signature
    given = {parameter: object() for parameter in signature.parameters}
    assert getattr(traced, name)(**given) is answer
    assert asked == [given]
    assert traced.counts == ({} if name in QUESTIONS else {name: 1})
    assert all(call.problem is given["problem"] for call in traced.calls)


def test_every_operation_is_counted_once_and_handed_on():
    traced, inner = Tracing(get_backend("numpy")), get_backend("numpy")
    q, k, v = make_qkv(3, 9)
    cache = {"cache_seqlens": [9], "num_splits": 2}
    bounds = {"cu_seqlens_q": [0, 1, 3], "cu_seqlens_k": [0, 4, 9]}
    batch = (q[None], k[None], v[None])
    for _ in range(2):
        for call in (
            lambda b: flashlib.flash_attention(q, k, v, backend=b, tile=2),
            lambda b: flashlib.flash_attention_decode(*batch, **cache, backend=b),
            lambda b: flashlib.flash_attention_paged(
                *batch, block_table=[[0]], **cache, backend=b
            ),
            lambda b: flashlib.flash_attention_varlen(q, k, v, **bounds, backend=b),
        ):
            assert same_bits(call(traced), call(inner))
    counts = {"choose": 2, "prefill": 2, "decode": 2, "paged": 2, "varlen": 2}
    assert traced.counts == counts
    assert set(traced.seconds) == set(counts) and min(traced.seconds.values()) > 0
    assert all(call.problem.n_heads == 4 for call in traced.calls)


def test_it_chooses_as_its_inner_backend_does():
    traced = Tracing(get_backend("blas"))
    x = np.ones((2, 1, 1), np.float32)
    with pytest.raises(Refused, match="keeps all scores"):
        flashlib.flash_attention(x, x, x, backend=traced, algorithm="flash")
    assert flashlib.flash_attention(x, x, x, backend=traced).out.max() == 1
    assert traced.name == "tracing blas"


def test_it_wraps_an_instance():
    with pytest.raises(ArgumentError, match="expected a Backend instance"):
        Tracing("numpy")
