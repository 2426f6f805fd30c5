"""Random calls against oracles that compute the answer on the spot.

The cases of :mod:`test_onnx_cases` are fixed. Here ONNX's reference evaluator and
PyTorch get calls that nobody has chosen.
"""

from types import SimpleNamespace

import numpy as np
import pytest
import test_onnx_cases as onnx_cases
from conftest import require
from hypothesis import given, settings
from hypothesis import strategies as st
from test_torch_oracle import agree, sdpa
from ways import DTYPES, Way

import flashlib
from flashlib.masks import as_dense
from flashlib.problem import attention_problem
from flashlib.testing import make_qkv

NAMES = ("materialized", *flashlib.available_backends())
every_backend = pytest.mark.parametrize("backend", NAMES)
often = settings(max_examples=40, deadline=None, derandomize=True)


@st.composite
def sizes(draw):
    group, n_kv_heads = draw(st.integers(1, 3)), draw(st.integers(1, 2))
    return {
        "seq_q": draw(st.integers(1, 20)),
        "seq_k": draw(st.integers(1, 70)),
        "n_heads": group * n_kv_heads,
        "n_kv_heads": n_kv_heads,
        "head_dim": draw(st.integers(1, 33)),
        "head_dim_v": draw(st.integers(1, 33)),
        "seed": draw(st.integers(0, 99)),
    }


def random_mask(draw, shape, dtype):
    """No mask, one of flags or one of addends; every row keeps its first key."""
    kind = draw(st.sampled_from(["none", "flags", "addends"]))
    random = np.random.default_rng(draw(st.integers(0, 99)))
    keep = random.random(shape) < 0.6
    keep[..., 0] = True
    if kind == "none":
        return None
    if kind == "flags":
        return keep
    return np.where(keep, random.standard_normal(shape), -np.inf).astype(dtype)


@st.composite
def onnx_calls(draw):
    """Return one call of the Attention operator, with what its evaluator answers."""
    from onnx import TensorProto, helper
    from onnx.reference import ReferenceEvaluator

    form = draw(sizes())
    past = draw(st.integers(0, form["seq_k"] - 1))
    form["seq_q"] = form["seq_k"] - past
    q, k, v = (x.swapaxes(0, 1)[None] for x in make_qkv(**form))
    feeds = {"Q": q, "K": k[:, :, past:], "V": v[:, :, past:]}
    mask = random_mask(draw, (form["seq_q"], form["seq_k"]), np.float32)
    if mask is not None:
        feeds["attn_mask"] = mask
    if past:
        feeds |= {"past_key": k[:, :, :past], "past_value": v[:, :, :past]}
    order = ("Q", "K", "V", "attn_mask", "past_key", "past_value")
    inputs = [name if name in feeds else "" for name in order]
    options = {
        "is_causal": draw(st.integers(0, 1)),
        "scale": draw(st.floats(0.05, 1)),
        "softcap": draw(st.sampled_from([0.0, 0.5, 3.0])),
    }
    outputs = ["Y", "present_key", "present_value"] if past else ["Y"]
    node = helper.make_node("Attention", inputs, outputs, **options)

    def tensor(name):
        kind = TensorProto.BOOL if name in feeds and feeds[name].dtype == bool else 1
        return helper.make_tensor_value_info(name, kind, None)

    graph = helper.make_graph(
        [node], "call", [tensor(n) for n in inputs if n], [tensor(n) for n in outputs]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)])
    answers = ReferenceEvaluator(model).run(None, feeds)
    given_ = [feeds[name] for name in inputs if name]
    return SimpleNamespace(model=model, data_sets=[(given_, answers)])


@every_backend
def test_onnx_evaluator(backend):
    require("onnx")

    @often
    @given(onnx_calls(), st.sampled_from([None, 1, 3, 16]))
    def agrees(case, tile):
        got, want = onnx_cases.run(Way(backend, tile, np.float32), case)
        assert got.dtype == want.dtype and got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=5e-6, atol=5e-6)

    agrees()


@st.composite
def torch_calls(draw):
    """Return tensors and options that PyTorch can be asked as one dense mask."""
    dtype = draw(st.sampled_from(DTYPES))
    q, k, v = make_qkv(**draw(sizes()), dtype=dtype)
    options = {"scale": draw(st.none() | st.floats(-0.15, 0.15))}
    kind = draw(st.sampled_from(["none", "causal", "window", "mask"]))
    if kind == "causal" and len(q) <= len(k):
        options["causal"] = True
    elif kind == "window":
        options["window"] = draw(st.tuples(*[st.integers(0, 30)] * 2))
    elif kind == "mask":
        flags = random_mask(draw, (q.shape[1], len(q), len(k)), dtype)
        if flags is not None:
            options["mask" if flags.dtype == bool else "bias"] = flags
    return (q, k, v), options


@every_backend
def test_pytorch(backend):
    require("torch")

    @often
    @given(torch_calls(), st.sampled_from([None, 1, 3, 16]))
    def agrees(call, tile):
        (q, k, v), options = call
        problem, _ = attention_problem(q, k, v, **options)
        mask = as_dense(problem) if problem.bias is None else options["bias"]
        if mask.dtype == bool and not mask.any(-1).all():
            return  # a row without keys: PyTorch's answer is NaN
        want = sdpa(
            q,
            k,
            v,
            mask.astype(np.float64) if mask.dtype != bool else mask,
            scale=options["scale"],
        )
        agree(Way(backend, tile, q.dtype)(q, k, v, **options), want, q, k, v, **options)

    agrees()
