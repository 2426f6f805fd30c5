"""The cases that ONNX ships for its Attention operator, on every backend.

All 93 are run. Of their outputs, `Y` is compared; `present_key` and `present_value`
are the concatenated caches that this file builds itself, and `qk_matmul_output` is the
score matrix, which flash attention does not have. Two conventions differ and are
translated: ONNX aligns causal at the position ``past length + i``, which is bottom
right over the keys up to the newest query; and it takes a batch, heads before tokens.
"""

import warnings

import numpy as np
import pytest
from conftest import require
from ways import TILES, Way

import flashlib

N_CASES = 93


def _cases():
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            from onnx.backend.test.case.node import collect_testcases

            found = collect_testcases("Attention")
    except ImportError:
        return []
    return [case for case in found if not case.name.endswith("_expanded")]


CASES = _cases()
NAMES = ("materialized", *flashlib.available_backends())


def test_the_cases_are_all_there():
    require("onnx")
    assert len(CASES) == N_CASES
    assert {case.model.graph.node[0].op_type for case in CASES} == {"Attention"}


def attributes(node):
    from onnx.helper import get_attribute_value

    return {item.name: get_attribute_value(item) for item in node.attribute}


def by_name(names, arrays):
    return dict(zip((name for name in names if name), arrays, strict=True))


def heads_first(x, n_heads):
    """[batch, heads, seq, width], also from concatenated heads."""
    if x.ndim == 4:
        return x
    return flashlib.split_heads(x, n_heads).swapaxes(1, 2)


def operands(given, options):
    """Q, K and V with a head axis, the caches in front of the new keys."""
    q = heads_first(given["Q"], options.get("q_num_heads"))
    k, v = (heads_first(given[name], options.get("kv_num_heads")) for name in "KV")
    past = 0
    if "past_key" in given:
        past = given["past_key"].shape[2]
        k = np.concatenate([given["past_key"], k], axis=2)
        v = np.concatenate([given["past_value"], v], axis=2)
    return q, k, v, past


def side(options, name):
    size = options.get(name, -1)
    return None if size < 0 else size


def one_row(way, q, k, v, attn_mask, offset, options):
    """One batch row, ``[heads, seq, width]``, whose query 0 is at `offset`."""
    seq_q, seq_k = q.shape[1], k.shape[1]
    causal = bool(options.get("is_causal", 0))
    window = (side(options, "left_window_size"), side(options, "right_window_size"))
    data = {}
    if attn_mask is not None:
        # A mask shorter than the keys hides the rest.
        seq_k = min(seq_k, attn_mask.shape[-1]) if attn_mask.shape[-1] > 1 else seq_k
        name = "mask" if attn_mask.dtype == bool else "bias"
        data[name] = attn_mask[..., :seq_k]
    k, v = k[:, :seq_k], v[:, :seq_k]
    if causal or window != (None, None):
        k, v, data = up_to_newest(k, v, data, max(offset + seq_q, 0))
    result = way(
        *(x.swapaxes(0, 1) for x in (q, k, v)),
        causal=causal,
        window=window,
        scale=options.get("scale"),
        softcap=options.get("softcap") or None,
        **data,
    )
    return result.out.swapaxes(0, 1)


def up_to_newest(k, v, data, length):
    """Cut keys behind the newest query, or add hidden ones up to it."""
    seq_k = k.shape[1]
    if length <= seq_k:
        data = {name: array[..., :length] for name, array in data.items()}
        return k[:, :length], v[:, :length], data
    assert not data, "no case has both a mask and queries behind the last key"
    missing = ((0, 0), (0, length - seq_k), (0, 0))
    k, v = (np.pad(x, missing, constant_values=np.nan) for x in (k, v))
    return k, v, {"mask": np.arange(length) < seq_k}


def run(way, case):
    node = case.model.graph.node[0]
    inputs, outputs = case.data_sets[0]
    given, options = by_name(node.input, inputs), attributes(node)
    q, k, v, past = operands(given, options)
    lengths = given.get("nonpad_kv_seqlen")
    rows = []
    for b in range(len(q)):
        attn_mask = given.get("attn_mask")
        if attn_mask is not None and attn_mask.ndim == 4:
            attn_mask = attn_mask[b if len(attn_mask) > 1 else 0]
        live = k.shape[2] if lengths is None else int(lengths[b])
        offset = past if lengths is None else live - q.shape[2]
        rows.append(
            one_row(
                way, q[b], k[b, :, :live], v[b, :, :live], attn_mask, offset, options
            )
        )
    y = np.stack(rows)
    if given["Q"].ndim == 3:
        y = flashlib.merge_heads(np.ascontiguousarray(y.swapaxes(1, 2)))
    return y, by_name(node.output, outputs)["Y"]


# The rounding of the reference: 8 bits of bfloat16, 11 of float16.
NEAR = {"bfloat16": 2e-2, "float16": 2e-3, "float32": 2e-6}


def assert_near(got, want, name):
    """Hold an output to what the case ships, as close as the dtype of that allows."""
    near = NEAR[want.dtype.name]
    got, want = got.astype(np.float64), want.astype(np.float64)
    np.testing.assert_allclose(got, want, rtol=near, atol=near, err_msg=name)


@pytest.mark.parametrize("backend", NAMES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_onnx(case, backend):
    for tile in TILES if backend != "materialized" else (None,):
        got, want = run(Way(backend, tile, None), case)
        assert got.dtype == want.dtype and got.shape == want.shape
        assert_near(got, want, case.name)
