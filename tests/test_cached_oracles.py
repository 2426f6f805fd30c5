"""Outside oracles and random calls, through decode, pages and packed rows."""

import numpy as np
import pytest
import test_onnx_cases as onnx_cases
from cached_ways import BatchRow, NotExpressible, Pages, Segment, engines
from conftest import require
from hypothesis import given, settings
from hypothesis import strategies as st

from flashlib.layout import repeat_kv
from flashlib.testing import assert_accurate, make_qkv

WAYS = [
    way
    for backend in engines()
    for way in (
        Segment(backend),
        BatchRow(backend),
        BatchRow(backend, 3),
        Pages(backend, 1),
        Pages(backend, 5, 2),
    )
]
every_way = pytest.mark.parametrize("way", WAYS, ids=str)


# What these functions cannot say, besides the cases with a mask of their own.
HIDDEN_KEYS = {"test_attention_local_window_with_past"}
MORE_QUERIES_THAN_KEYS = {
    "test_attention_4d_causal_nonpad_negative_offset_structural_empty"
}


def not_said(way):
    masked = {
        case.name
        for case in onnx_cases.CASES
        if "attn_mask" in case.model.graph.node[0].input
    }
    assert len(masked) == 52
    more = set() if isinstance(way, Segment) else MORE_QUERIES_THAN_KEYS
    return masked | HIDDEN_KEYS | more


@every_way
def test_onnx_cases_that_can_be_said(way):
    require("onnx")
    skipped = set()
    for case in onnx_cases.CASES:
        try:
            got, want = onnx_cases.run(way, case)
        except NotExpressible:
            skipped.add(case.name)
            continue
        onnx_cases.assert_near(got, want, case.name)
    assert skipped == not_said(way)


@every_way
@pytest.mark.parametrize("sizes", [(1, 300, 16, 8, 64), (3, 70, 6, 2, 20)], ids=str)
def test_pytorch(way, sizes):
    torch = require("torch")
    seq_q, seq_k, n_heads, n_kv_heads, head_dim = sizes
    q, k, v = make_qkv(
        seq_q, seq_k, n_heads=n_heads, n_kv_heads=n_kv_heads, head_dim=head_dim
    )
    group = n_heads // n_kv_heads
    tensors = (
        torch.from_numpy(x.astype(np.float64)).transpose(0, 1)[None]
        for x in (q, repeat_kv(k, group), repeat_kv(v, group))
    )
    seen = torch.ones(seq_q, seq_k).tril(seq_k - seq_q).bool()
    want = torch.nn.functional.scaled_dot_product_attention(*tensors, attn_mask=seen)
    got = way(q, k, v, causal=True)
    np.testing.assert_allclose(
        got.out, want[0].transpose(0, 1).numpy(), atol=1e-6, rtol=1e-5
    )
    assert_accurate(got, q, k, v, causal=True)


@st.composite
def calls(draw):
    seq_k = draw(st.integers(1, 90))
    seq_q = draw(st.integers(1, min(seq_k, 9)))
    n_kv_heads, group = draw(st.integers(1, 3)), draw(st.integers(1, 5))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    q, k, v = make_qkv(
        seq_q,
        seq_k,
        n_heads=n_kv_heads * group,
        n_kv_heads=n_kv_heads,
        head_dim=draw(st.integers(1, 40)),
        head_dim_v=draw(st.integers(1, 40)),
        dtype=dtype,
        seed=draw(st.integers(0, 99)),
        heat=draw(st.sampled_from([0.25, 1.0])),
    )
    options = {"causal": draw(st.booleans())}
    window = st.none() | st.integers(1, 60) | st.tuples(*[st.integers(0, 40)] * 2)
    options["window"] = draw(window)
    options["softcap"] = draw(st.none() | st.floats(0.5, 30))
    # Scores of about 1: the rule compares the largest errors of two ways to
    # round, and over few rows of larger scores that comparison is a lottery.
    options["scale"] = draw(st.none() | st.floats(-0.15, 0.15))
    if draw(st.booleans()):
        options["sink"] = np.linspace(-2, 3, n_kv_heads * group).astype(dtype)
    return (q, k, v), options


@every_way
@settings(max_examples=25, deadline=None, derandomize=True)
@given(calls())
def test_accuracy_rule(way, call):
    tensors, options = call
    assert_accurate(way(*tensors, **options), *tensors, **options)


@pytest.mark.parametrize("backend", engines())
@settings(max_examples=15, deadline=None, derandomize=True)
@given(calls(), st.integers(1, 120))
def test_every_number_of_splits_agrees(backend, call, num_splits):
    tensors, options = call
    got = BatchRow(backend, num_splits)(*tensors, **options)
    assert_accurate(got, *tensors, **options)
