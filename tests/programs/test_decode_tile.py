"""The decode program: against float64, against the published counts, in time."""

import math
import sys

import ml_dtypes
import numpy as np
import pytest

import flashlib
from flashlib.machine import NC_V2, NC_V3, NC_V4, static_histogram, timeline
from flashlib.programs import decode_tile
from flashlib.programs.decode_sizes import Sizes, checked_sizes

BF16 = ml_dtypes.bfloat16


def _problem(seq_q, n_heads, n_kv_heads, seq_k, head_dim, head_dim_v=None, **kind):
    rng = np.random.default_rng(kind.pop("seed", 0))
    dtype = kind.pop("dtype", np.float32)
    shapes = (
        (seq_q, n_heads, head_dim),
        (seq_k, n_kv_heads, head_dim),
        (seq_k, n_kv_heads, head_dim_v or head_dim),
    )
    return [rng.standard_normal(s).astype(np.float32).astype(dtype) for s in shapes]


def _oracle(q, k, v, scale=None, dtype=np.float64):
    """Plain attention of every query to every key, computed in one type."""
    group = q.shape[1] // k.shape[1]
    q, k, v = (x.astype(dtype) for x in (q, k, v))
    k, v = np.repeat(k, group, 1), np.repeat(v, group, 1)
    scale = 1 / math.sqrt(q.shape[2]) if scale is None else scale
    s = np.einsum("qhd,khd->hqk", q, k) * dtype(scale)
    p = np.exp(s - s.max(-1, keepdims=True))
    return np.einsum("hqk,khd->qhd", p / p.sum(-1, keepdims=True), v)


def _assert_accurate(q, k, v, out, scale=None):
    """The rule of the book: twice the error of plain float32, and one unit."""
    want = _oracle(q, k, v, scale)
    plain = np.abs(_oracle(q, k, v, scale, np.float32) - want).max()
    unit = np.finfo(np.float32).eps * np.abs(v).max()
    assert np.abs(out - want).max() <= 2 * plain + unit


def test_the_running_row():
    """1 query, 6 keys, head_dim 2, scores (1, 3, 2, 5, 4, 0)."""
    scores = np.array([1, 3, 2, 5, 4, 0], np.float32)
    q = np.array([1, 0], np.float32).reshape(1, 1, 2)
    k = np.stack([scores, -scores], 1).reshape(6, 1, 2)
    v = np.arange(12, dtype=np.float32).reshape(6, 1, 2)
    result = decode_tile(q, k, v, scale=1.0)
    weights = np.exp(scores - 5.0) / np.exp(scores - 5.0).sum()
    np.testing.assert_allclose(result.out[0, 0], weights @ v[:, 0], rtol=1e-6)
    _assert_accurate(q, k, v, result.out, 1.0)


CONFIGS = [
    # seq_q, n_heads, n_kv_heads, seq_k, head_dim, head_dim_v
    (1, 16, 8, 4096, 128, 128),
    (1, 1, 1, 1, 1, 1),
    (1, 4, 1, 127, 64, 32),
    (3, 4, 2, 129, 16, 128),
    (4, 64, 8, 256, 32, 32),
    (5, 59, 1, 384, 64, 64),
    (1, 8, 8, 8192, 16, 16),
]


@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_equals_the_oracle(config):
    q, k, v = _problem(*config)
    _assert_accurate(q, k, v, decode_tile(q, k, v).out)


@pytest.mark.parametrize("spec", [NC_V2, NC_V3, NC_V4], ids=lambda s: s.name)
@pytest.mark.parametrize("seq_k", [1, 3, 127, 128, 200])
def test_runs_on_every_generation(spec, seq_k):
    """Also where some partitions hold no key at all, and their maximum is -inf."""
    q, k, v = _problem(2, 4, 2, seq_k, 16)
    result = decode_tile(q, k, v, spec=spec)
    _assert_accurate(q, k, v, result.out)
    assert ("dma_transpose" in result.trace.histogram()) == (spec.generation > 2)


@pytest.mark.parametrize("dtype, eps", [(BF16, 2.0**-8), (np.float16, 2.0**-11)])
def test_narrow_types_stay_within_their_rounding(dtype, eps):
    """Rounded q * scale, rounded p and a rounded output: three errors of eps / 2."""
    q, k, v = _problem(1, 16, 8, 4096, 128, dtype=dtype)
    out = decode_tile(q, k, v).out
    assert out.dtype == dtype
    error = np.abs(out.astype(np.float64) - _oracle(q, k, v)).max()
    top = np.abs(_oracle(q, k, v)).max()
    assert 0 < error <= 4 * eps * max(top, 0.05)


@pytest.mark.parametrize("scale", [0.0, -0.5, 2.0])
def test_any_scale(scale):
    q, k, v = _problem(1, 2, 1, 70, 8)
    _assert_accurate(q, k, v, decode_tile(q, k, v, scale=scale).out, scale)


def test_large_scores_do_not_overflow():
    q, k, v = _problem(1, 2, 1, 300, 8)
    out = decode_tile(1e3 * q, 1e3 * k, v, scale=1.0).out
    assert np.isfinite(out).all()
    _assert_accurate(1e3 * q, 1e3 * k, v, out, 1.0)


# -- counts of the published kernel for one tile, keys in sequence -------------------


@pytest.mark.parametrize(
    "config",
    [
        (1, 16, 8, 4096, 128, 128),
        (1, 2, 2, 1024, 64, 64),
        (4, 64, 8, 256, 32, 32),
        (5, 60, 2, 640, 64, 64),
        (1, 512, 1, 512, 16, 16),
    ],
    ids=str,
)
def test_counts_equal_the_formulas(config):
    seq_q, n_heads, b, seq_k, head_dim, head_dim_v = config
    q, k, v = _problem(*config)
    counts = decode_tile(q, k, v).trace.histogram(by=("step", "op"))
    width = seq_q * n_heads // b
    n, columns = seq_k // 128, width * b
    per_group = min(32, 512 // width)
    parts = [min(128, columns - i) for i in range(0, columns, 128)]
    t = len(parts)
    expected = {
        ("mm1", "memset"): 1,
        ("k_load", "dma_transpose"): b,
        ("mm1", "nc_matmul"): b * n,
        ("mm1", "tensor_copy_predicated"): b * math.ceil(n / per_group),
        ("max", "tensor_reduce"): 1 + t,
        ("max", "nc_transpose"): t + t,
        ("max", "tensor_scalar"): t,
        ("max", "tensor_copy"): 2 * t,
        ("exp", "tensor_tensor"): 1,
        ("exp", "activation"): 1,
        ("sum", "nc_matmul"): t * n,
        ("sum", "tensor_reduce"): t,
        ("recip", "reciprocal"): 1,
        ("recip", "nc_transpose"): sum(math.ceil(p / 32) for p in parts),
        ("recip", "nc_stream_shuffle"): 4,
        ("v_load", "dma_copy"): b,
        ("mm2", "nc_matmul"): b * n,
        ("mm2", "tensor_tensor"): b,
        ("store", "dma_copy"): 1,
    }
    others = {"q_load", "mask", "setup"}
    assert {key: c for key, c in counts.items() if key[0] not in others} == expected


def test_kv_bytes_are_read_once_and_free_of_the_group():
    """Query heads ride along: K and V bytes and product counts do not grow."""
    moved, products = set(), set()
    for n_heads in (2, 4, 16):
        q, k, v = _problem(1, n_heads, 2, 512, 64, dtype=BF16)
        trace = decode_tile(q, k, v).trace
        moved.add(trace.bytes(step="k_load") + trace.bytes(step="v_load"))
        counts = trace.histogram(by=("step", "op"))
        products.add((counts["mm1", "nc_matmul"], counts["mm2", "nc_matmul"]))
    assert moved == {2 * 512 * 2 * 64 * 2}
    assert products == {(8, 8)}


def test_intensity_is_the_group():
    """Two products of two flop per weight and value, two bytes each: g flop/B."""
    for group in (1, 2, 8, 32):
        q, k, v = _problem(1, group, 1, 1024, 64, dtype=BF16)
        trace = decode_tile(q, k, v).trace
        flops = trace.flops("mm1") + trace.flops("mm2")
        assert (
            flops / (trace.bytes(step="k_load") + trace.bytes(step="v_load")) == group
        )


def test_from_dma_bound_to_array_bound():
    """Loading K and V against multiplying by them: which works longer?

    Both at their peaks meet at 78.6 Tflop/s over 368 GB/s, 214 flop/B, where g
    heads make g flop/B. Runs of 256 bytes halve the rate of the DMA here, and below
    64 columns a product takes 64 cycles all the same. The array overtakes the DMA
    between 256 and 512 heads; the vector engine has done so long before.
    """
    array, vector = {}, {}
    for group in (1, 2, 8, 32, 64, 256, 512):
        q, k, v = _problem(1, group, 1, 1024, 128, dtype=BF16)
        line = timeline(decode_tile(q, k, v).trace)
        loads = line.busy("k_load", "v_load")["dma"]
        array[group] = line.busy("mm1", "sum", "mm2")["tensor"] / loads
        vector[group] = line.busy()["vector"] / loads
    assert all(array[group] < 0.2 for group in (1, 2, 8, 32))
    assert array[256] < 1 < array[512]
    # max, exp and masks grow with the heads too, and their engine is slower
    assert vector[32] < 1 < vector[64]
    ridge = NC_V3.peak_flops_per_ns() / NC_V3.dma_peak_bytes_per_ns()
    assert ridge == pytest.approx(213.7, abs=0.1)


def test_static_sites_are_not_executions():
    q, k, v = _problem(1, 16, 8, 4096, 128)
    executed = decode_tile(q, k, v).trace.histogram()
    written = static_histogram(sys.modules[decode_tile.__module__])
    assert written["nc_matmul"] == 2
    assert executed["nc_matmul"] == 2 * 8 * 32 + 32


# -- refusals ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change, error, words",
    [
        ({"head_dim": 129}, flashlib.ShapeError, "head_dim has 129; expected at most"),
        ({"head_dim_v": 129}, flashlib.ShapeError, "head_dim_v has 129; expected at"),
        ({"seq_k": 8193}, flashlib.ShapeError, "seq_k has 8193; expected at most 8192"),
        (
            {"seq_q": 257, "n_heads": 4},
            flashlib.ShapeError,
            r"seq_q \* group has 514; expected at most 512",
        ),
        (
            {"n_heads": 3},
            flashlib.ShapeError,
            "q has 3 heads; expected a multiple of n_kv_heads = 2",
        ),
        ({"seq_k": 0}, flashlib.ShapeError, "k has shape .0, 2, 8.; .* 1 or more"),
        ({"dtype": np.float64}, flashlib.DTypeError, "q has dtype float64"),
    ],
    ids=lambda x: str(x)[:24],
)
def test_refuses_before_the_first_instruction(change, error, words):
    base = {"seq_q": 1, "n_heads": 2, "n_kv_heads": 2, "seq_k": 16, "head_dim": 8}
    q, k, v = _problem(**(base | change))
    with pytest.raises(error, match=words):
        decode_tile(q, k, v)


def test_the_machine_refuses_scores_that_do_not_fit():
    q, k, v = _problem(8, 512, 8, 2048, 8)
    with pytest.raises(flashlib.CapacityError, match="bytes per partition"):
        decode_tile(q, k, v)


def test_refuses_mixed_inputs():
    q, k, v = _problem(1, 2, 2, 16, 8)
    with pytest.raises(flashlib.DTypeError, match="k has dtype bfloat16"):
        decode_tile(q, k.astype(BF16), v)
    with pytest.raises(
        flashlib.ShapeError, match="q has shape .2, 8.; expected 3 axes"
    ):
        decode_tile(q[0], k, v)


def test_each_size_that_does_not_belong_has_its_own_words():
    q, k, v = _problem(1, 2, 2, 16, 8)
    with pytest.raises(flashlib.ShapeError, match="k and v have 15 and 16 tokens"):
        decode_tile(q, k[:-1], v)
    with pytest.raises(flashlib.ShapeError, match="k and v have 2 and 1 heads"):
        decode_tile(q, k, v[:, :1])
    with pytest.raises(flashlib.ShapeError, match="q and k have head_dim 8 and 7"):
        decode_tile(q, k[:, :, :7], v)


def test_the_largest_tile_is_accepted():
    limits = Sizes(256, 8192, 1, 2, 128, 128)
    q = np.zeros((256, 2, 128), np.float32)
    k = v = np.zeros((8192, 1, 128), np.float32)
    assert checked_sizes(q, k, v) == limits


def test_ragged_tile_keeps_the_inputs_and_the_rest_of_memory():
    """Keys that do not exist weigh nothing; inputs are read, not written."""
    q, k, v = _problem(1, 4, 2, 130, 8)
    copies = [x.copy() for x in (q, k, v)]
    result = decode_tile(q, k, v)
    for x, before in zip((q, k, v), copies, strict=True):
        np.testing.assert_array_equal(x, before)
    assert result.machine.psum.free_banks == tuple(range(8))
    _assert_accurate(q, k, v, result.out)
