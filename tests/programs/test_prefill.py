"""The prefill kernel against float64: masks, sections, prefixes, two cores."""

import ml_dtypes
import numpy as np
import pytest

import flashlib
from flashlib.machine import NC_V2
from flashlib.programs import attention_cte
from flashlib.programs.cte.checks import check_sizes
from flashlib.programs.cte.sizes import CteSizes

BF16 = np.dtype(ml_dtypes.bfloat16)


def draw(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def golden(q, k, v, scale, mask, sink=None):
    """Attention of inputs rounded to bfloat16, in float64."""
    q, k, v = (x.astype(BF16).astype(np.float64) for x in (q, k, v))
    group = len(q) // len(k)
    k, v = np.repeat(k, group, 0), np.repeat(v, group, 0)
    s = np.where(mask, np.einsum("bqd,bkd->bqk", q, k) * scale, -np.inf)
    top = s.max(-1, keepdims=True)
    if sink is not None:
        top = np.maximum(top, sink[:, :, None])
    p = np.exp(s - top)
    total = p.sum(-1, keepdims=True)
    if sink is not None:
        total = total + np.exp(sink[:, :, None] - top)
    return p @ v / total, -top[..., 0], 1 / total[..., 0]


def seen(seq_q, seq_k, window=None, offset=0, stride=1):
    """Which key each row keeps, ``[1, seq_q, seq_k]``."""
    row, key = offset + np.arange(seq_q)[:, None] * stride, np.arange(seq_k)
    mask = key <= row
    if window is not None:
        mask &= key > row - window
    return mask[None]


def close(result, want, tolerance=1e-2):
    out = result.out.astype(np.float64)
    assert np.abs(out - want[0]).max() <= tolerance * np.abs(want[0]).max()


def counts(result):
    total = {}
    for trace in result.traces:
        for key, n in trace.histogram(by=("step", "op")).items():
            total[key] = total.get(key, 0) + n
    return total


SHAPES = [
    # batch, batch_kv, seq_q, seq_k, head_dim, arguments
    (1, 1, 128, 128, 128, {}),
    (2, 1, 200, 300, 33, {}),
    (3, 3, 70, 40, 16, {}),
    (2, 2, 577, 577, 88, {"causal": False}),
    (1, 1, 640, 640, 64, {"window": 128}),
    (1, 1, 640, 640, 64, {"window": 1}),
    (1, 1, 1300, 1300, 32, {"window": 200}),
    (1, 1, 256, 1024, 64, {"q_offset": 256}),
    (1, 1, 256, 1024, 64, {"q_offset": 1, "q_stride": 4}),
    (1, 1, 200, 1024, 32, {"q_offset": 9, "q_stride": 4, "window": 100}),
    (1, 1, 200, 1024, 32, {"q_offset": 3, "q_stride": 4, "scale": 0.4}),
    (5, 5, 130, 140, 20, {"scale": 0.7}),
]


@pytest.mark.parametrize("lnc", [1, 2])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_equals_float64(shape, lnc):
    batch, batch_kv, seq_q, seq_k, d, how = shape
    q, k, v = draw(batch, seq_q, d), draw(batch_kv, seq_k, d), draw(batch_kv, seq_k, d)
    scale = how.get("scale", d**-0.5)
    if "window" in how:
        q, scale, how = q * np.float32(d**-0.5), 1.0, how | {"scale": 1.0}
    mask = np.ones((1, seq_q, seq_k), bool)
    if how.get("causal", True):
        offset, stride = how.get("q_offset", 0), how.get("q_stride", 1)
        mask = seen(seq_q, seq_k, how.get("window"), offset, stride)
    close(attention_cte(q, k, v, **how, lnc=lnc), golden(q, k, v, scale, mask))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, BF16])
def test_types_and_orientations(dtype):
    q, k, v = draw(2, 130, 32), draw(1, 140, 32, seed=1), draw(1, 140, 32, seed=2)
    q, k, v = (x.astype(dtype) for x in (q, k, v))
    want = golden(q, k, v, 32**-0.5, seen(130, 140))
    plain = attention_cte(q, k, v)
    assert plain.out.dtype == dtype and plain.out.shape == q.shape
    close(plain, want)
    turned = attention_cte(
        np.swapaxes(q, 1, 2),
        np.swapaxes(k, 1, 2),
        v,
        tp_q=False,
        tp_k=True,
        tp_out=True,
    )
    np.testing.assert_array_equal(np.swapaxes(turned.out, 1, 2), plain.out)


def test_statistics_come_along():
    q, k, v = draw(2, 300, 16), draw(2, 300, 16, seed=1), draw(2, 300, 16)
    sink = np.float32([[0.5], [3.0]])
    for more in ({}, {"sink": sink}):
        result = attention_cte(q, k, v, **more)
        want = golden(q, k, v, 0.25, seen(300, 300), more.get("sink"))
        close(result, want)
        for found, expected in zip(result[1:3], want[1:], strict=True):
            assert found.shape == (2, 128, 3) and found.dtype == np.float32
            rows = found.transpose(0, 2, 1).reshape(2, -1)
            np.testing.assert_allclose(rows[:, :300], expected, rtol=1e-4, atol=1e-5)
            assert (rows[:, 300:] != expected.max()).all()


@pytest.mark.parametrize("used", [0, 1, 700, 1000])
@pytest.mark.parametrize("window", [None, 64, 300])
def test_prefix(used, window):
    d, scale = 32, np.float32(32**-0.5)
    q, k, v = draw(2, 150, d) * scale, draw(1, 150, d, seed=1), draw(1, 150, d, seed=2)
    k_prior, v_prior = draw(1, 1000, d, seed=3), draw(1, 1000, d, seed=4)
    own = seen(150, 150, window)
    key, row = np.arange(1000), np.arange(150)[:, None]
    before = np.broadcast_to(key < used, (150, 1000)).copy()
    if window is not None:
        before &= key >= row + used - (window - 1)
    mask = np.concatenate([before[None], own], 2)
    want = golden(
        q, np.concatenate([k_prior, k], 1), np.concatenate([v_prior, v], 1), 1.0, mask
    )
    how = {"k_prior": k_prior, "v_prior": v_prior, "scale": 1.0, "window": window}
    for length in (used, np.array([used])):
        close(attention_cte(q, k, v, prior_used_len=length, **how), want)
    two = attention_cte(q[:1], k, v, prior_used_len=used, lnc=2, **how)
    close(two, (want[0][:1],))


@pytest.mark.parametrize("causal, window", [(True, None), (True, 50), (False, None)])
def test_packed_sequences(causal, window):
    lengths = [100, 156, 30, 226]
    ends = np.cumsum(lengths)
    start = np.repeat(ends - lengths, lengths)[:, None].astype(np.float32)
    end = np.repeat(ends, lengths)[:, None].astype(np.float32)
    q, k, v = draw(1, 512, 32) * 0.2, draw(1, 512, 32, seed=1), draw(1, 512, 32, seed=2)
    key = np.arange(512)
    mask = (key >= start) & (key < end)
    if causal:
        mask = mask & seen(512, 512, window)[0]
    result = attention_cte(
        q, k, v, scale=1.0, causal=causal, window=window, bound_min=start, bound_max=end
    )
    close(result, golden(q, k, v, 1.0, mask[None]))


def test_counts_of_2048_causal_keys():
    q, k, v = draw(1, 2048, 32), draw(1, 2048, 32, seed=1), draw(1, 2048, 32, seed=2)
    for lnc in (1, 2):
        result = attention_cte(q, k, v, lnc=lnc)
        found = counts(result)
        assert found["mm1", "nc_matmul"] == 40 and found["mm2", "nc_matmul"] == 136
        assert found["mask", "affine_select"] == 16
        assert ("mask", "range_select") not in found
    assert all("sendrecv" not in t.histogram() for t in result.traces)
    groups = [
        t.histogram(by=("step", "op"))["max", "tensor_reduce"] for t in result.traces
    ]
    assert groups == [10, 6]
    close(result, golden(q, k, v, 32**-0.5, seen(2048, 2048)))


def test_narrow_windows_select_by_range_only():
    q, k, v = draw(1, 700, 16) * 0.25, draw(1, 700, 16, seed=1), draw(1, 700, 16)
    narrow = counts(attention_cte(q, k, v, window=128, scale=1.0))
    wide = counts(attention_cte(q, k, v, window=129, scale=1.0))
    assert ("mask", "affine_select") not in narrow
    assert narrow["mask", "range_select"] == narrow["mm1", "nc_matmul"]
    assert ("mask", "range_select") not in wide
    assert wide["mask", "affine_select"] == 2 * wide["mm1", "nc_matmul"]


def test_sections():
    """10,240 keys are one section; 10,241 are two, joined through the output type."""
    q = draw(1, 4, 8).astype(BF16)
    for keys, loads in ((10240, 0), (10241, 1)):
        k, v = draw(1, keys, 8, seed=1).astype(BF16), draw(1, keys, 8, seed=2)
        result = attention_cte(q, k, v.astype(BF16), causal=False)
        found = counts(result)
        assert found.get(("join", "dma_copy"), 0) == loads
        want = golden(q, k, v, 8**-0.5, np.ones((1, 4, keys), bool))
        # p rounded, the output rounded, and once more between the sections
        limit = (3 + loads) * 2.0**-9 * np.abs(want[0]).max()
        assert np.abs(result.out.astype(np.float64) - want[0]).max() <= limit
    assert len(CteSizes(1, 1, 4, 10240, 8).sections()) == 1
    assert [s.size for s in CteSizes(1, 1, 4, 10241, 8).sections()] == [8192, 2049]


def test_unnormalized_sections_are_rounded_to_the_type_of_q():
    """The same values with float32 between the sections come closer."""
    q, k, v = draw(1, 2, 8), draw(1, 10241, 8, seed=1), draw(1, 10241, 8, seed=2)
    q, k, v = (x.astype(BF16).astype(np.float32) for x in (q, k, v))
    mask = np.ones((1, 2, 10241), bool)
    want = golden(q, k, v, 8**-0.5, mask)[0]
    fine = attention_cte(q, k, v, causal=False).out
    coarse = attention_cte(q.astype(BF16), k, v, causal=False).out
    error = [np.abs(x.astype(np.float64) - want).max() for x in (fine, coarse)]
    assert error[0] < error[1]


def test_a_masked_section_is_wiped_by_the_next():
    """A prefix of which nothing counts fills the first section with garbage."""
    d = 8
    q, k, v = draw(1, 3, d), draw(1, 600, d, seed=1), draw(1, 600, d, seed=2)
    prior = draw(1, 10000, d, seed=3)
    result = attention_cte(
        q, k, v, scale=1.0, k_prior=prior, v_prior=prior, prior_used_len=0
    )
    close(result, golden(q, k, v, 1.0, seen(3, 600)))


@pytest.mark.parametrize("causal", [True, False])
def test_a_row_without_keys_is_the_mean(causal):
    q, k, v = draw(1, 5, 8), draw(1, 600, 8, seed=1), draw(1, 600, 8, seed=2)
    low, high = np.zeros((5, 1)), np.full((5, 1), 600)
    high[2] = 0
    result = attention_cte(
        q, k, v, scale=1.0, causal=causal, bound_min=low, bound_max=high
    )
    mean = v.astype(BF16).astype(np.float64).mean(1)[0]
    np.testing.assert_allclose(result.out[0, 2], mean, atol=1e-5)
    outside = attention_cte(draw(1, 300, 8), k[:, :10], v[:, :10], window=5, scale=1.0)
    mean = v[0, :10].astype(BF16).astype(np.float64).mean(0)
    np.testing.assert_allclose(outside.out[0, 20:], np.tile(mean, (280, 1)), atol=1e-5)


def test_a_negative_scale_lets_masked_keys_win():
    """The finite fill is scaled too and becomes about +1e38: a published hazard."""
    q, k, v = draw(1, 4, 8), draw(1, 4, 8, seed=1), draw(1, 4, 8, seed=2)
    out = attention_cte(q, k, v, scale=-0.5).out[0]
    future = v.astype(BF16).astype(np.float64)[0]
    for row in range(3):
        np.testing.assert_allclose(out[row], future[row + 1 :].mean(0), atol=1e-5)
    flat = attention_cte(q, k, v, scale=-0.5, causal=False)
    close(flat, golden(q, k, v, -0.5, np.ones((1, 4, 4), bool)))


def test_shares_of_two_cores():
    def cut(*sizes, **more):
        return [
            [(s.item, len(s.groups)) for s in share]
            for share in CteSizes(*sizes, **more).shares(2)
        ]

    assert cut(4, 4, 256, 256, 8) == [[(0, 2), (1, 2)], [(2, 2), (3, 2)]]
    assert cut(1, 1, 1023, 1023, 8) == [[(0, 8)], []]
    assert cut(3, 3, 2048, 2048, 8) == [[(0, 16), (2, 10)], [(1, 16), (2, 6)]]
    assert cut(1, 1, 2048, 2048, 8, causal=False) == [[(0, 8)], [(0, 8)]]
    assert cut(1, 1, 2048, 2048, 8, window=300) == [[(0, 8)], [(0, 8)]]


def test_a_sink_counts_once_over_two_sections():
    q, k, v = draw(1, 4, 8), draw(1, 10241, 8, seed=1), draw(1, 10241, 8, seed=2)
    v[..., 0] = 1  # so that a heavier sink is seen
    sink = np.float32([[9.5]])
    result = attention_cte(q, k, v, causal=False, sink=sink)
    want = golden(q, k, v, 8**-0.5, np.ones((1, 4, 10241), bool), sink)
    share = 1 - want[0][0, :, 0]
    assert (share > 0.2).all() and (share < 0.8).all()
    close(result, want)
    np.testing.assert_allclose(result.recip[0, :4, 0], want[2][0], rtol=1e-3)


def test_an_infinitely_negative_sink_is_none():
    q, k, v = GOOD["q"], GOOD["k"], GOOD["v"]
    none = attention_cte(q, k, v, sink=np.full((2, 1), -np.inf))
    np.testing.assert_array_equal(none.out, attention_cte(q, k, v).out)


def test_numbers_of_numpy_are_numbers():
    q, k, v = GOOD["q"], GOOD["k"], GOOD["v"]
    plain = attention_cte(q, k, v, scale=1.0, window=9, q_offset=3).out
    same = attention_cte(
        q,
        k,
        v,
        scale=np.float32(1),
        window=np.int16(9),
        q_offset=np.uint8(3),
        causal=np.True_,
        lnc=np.int64(1),
    ).out
    np.testing.assert_array_equal(same, plain)


@pytest.mark.parametrize("window", [2**24, 2**31, 10**30])
def test_a_window_wider_than_all_keys_cuts_nothing(window):
    q, k, v = GOOD["q"], GOOD["k"], GOOD["v"]
    plain = attention_cte(q, k, v, scale=1.0).out
    wide = attention_cte(q, k, v, scale=1.0, window=window).out
    np.testing.assert_array_equal(wide, plain)


def test_the_last_position_that_float32_tells_apart():
    q, k, v = GOOD["q"], GOOD["k"], GOOD["v"]
    far = attention_cte(q, k, v, q_offset=2**24 - 20).out
    np.testing.assert_array_equal(far, attention_cte(q, k, v, causal=False).out)


def test_nothing_is_skipped_where_the_offset_reaches_the_stride():
    """From q_offset = q_stride on, the last row sees a key beyond the plan."""
    q, k, v = draw(1, 128, 16), draw(1, 1024, 16, seed=1), draw(1, 1024, 16, seed=2)
    k[0, 512], q[0, -1] = 8, 8  # the last row looks at its own key alone
    for offset, tiles in ((3, 1), (4, 2)):
        result = attention_cte(q, k, v, q_offset=offset, q_stride=4)
        assert counts(result)["mm1", "nc_matmul"] == tiles
        close(result, golden(q, k, v, 0.25, seen(128, 1024, None, offset, 4)))


def test_a_window_skips_keys_that_just_left_it():
    """Row 640 keeps keys 512 to 640 of a window of 129: key 511 is out."""
    q, k, v = draw(1, 768, 16) * 0.25, draw(1, 768, 16, seed=1), draw(1, 768, 16)
    found = counts(attention_cte(q, k, v, window=129, scale=1.0))
    assert found["mm1", "nc_matmul"] == 5 + 2
    assert found["mm2", "nc_matmul"] == 1 + 5 * 2


def test_one_row_whose_window_begins_behind_the_last_key():
    """Row 767 sees keys from 700 on: none of 700, so all count, also those that the
    other rows of its group have left behind."""
    q, k, v = draw(1, 768, 8), draw(1, 700, 8, seed=1), draw(1, 700, 8, seed=2)
    out = attention_cte(q, k, v, window=68, scale=1.0).out
    mean = v[0].astype(BF16).astype(np.float64).mean(0)
    np.testing.assert_allclose(out[0, 767], mean, atol=1e-5)
    rows = slice(0, 767)
    want = golden(q[:, rows], k, v, 1.0, seen(768, 700, 68)[:, rows])[0][0]
    assert np.abs(out[0, rows] - want).max() <= 1e-2 * np.abs(want).max()


def test_keys_up_to_the_first_row_need_no_mask():
    """Row 128 sees all of keys 0 to 128."""
    q, k, v = draw(1, 256, 16), draw(1, 129, 16, seed=1), draw(1, 129, 16, seed=2)
    result = attention_cte(q, k, v)
    assert counts(result)["mask", "affine_select"] == 1
    close(result, golden(q, k, v, 0.25, seen(256, 129)))


GOOD = {"q": draw(2, 20, 8), "k": draw(1, 30, 8), "v": draw(1, 30, 8)}
PRIOR = {"k_prior": GOOD["k"], "v_prior": GOOD["v"], "prior_used_len": 3, "scale": 1.0}
LONG = np.zeros((1, 131073, 1), np.float32)
SHAPE, TYPE, VALUE = flashlib.ShapeError, flashlib.DTypeError, flashlib.ArgumentError
BOUNDS = {"bound_min": np.zeros((20, 1)), "scale": 1.0}
REFUSED = [
    ({"q": draw(2, 20, 129), "k": draw(1, 3, 129), "v": draw(1, 3, 129)}, SHAPE, "129"),
    (
        {"q": draw(3, 20, 8), "k": draw(2, 3, 8), "v": draw(2, 3, 8)},
        SHAPE,
        "batch has 3",
    ),
    ({"q": np.zeros((513, 1, 8), np.float32)}, SHAPE, "513"),
    (
        {"q": LONG, "k": LONG[:, :3], "v": LONG[:, :3]},
        SHAPE,
        "seq_q has 131073; expected at most 131072",
    ),
    ({"q": LONG[:, :3], "k": LONG, "v": LONG}, SHAPE, "seq_k has 131073"),
    (
        {"q": GOOD["q"][..., :1], "k": GOOD["k"][..., :1], "v": GOOD["v"][..., :1]}
        | {"k_prior": LONG, "v_prior": LONG, "prior_used_len": 3, "scale": 1.0},
        SHAPE,
        "seq_prior has 131073",
    ),
    ({"q": GOOD["q"][..., :4]}, SHAPE, "k has shape"),
    ({"q": draw(2, 8)}, SHAPE, "q has shape"),
    ({"q": np.zeros((2, 0, 8), np.float32)}, SHAPE, "1 or more"),
    ({"v": draw(1, 31, 8)}, SHAPE, "v has shape"),
    ({"q": GOOD["q"].astype(np.float64)}, TYPE, "float64"),
    ({"window": 0, "scale": 1.0}, VALUE, "window has 0"),
    ({"window": 4}, VALUE, "scale has None"),
    ({"window": 4, "scale": 0.5}, VALUE, "scale has 0.5"),
    ({"window": 4, "scale": 1.0, "causal": False}, VALUE, "causal has False"),
    ({"q_offset": 4, "causal": False}, VALUE, "causal has False"),
    ({"q_offset": -1}, VALUE, "q_offset has -1"),
    ({"q_stride": 33}, VALUE, "q_stride 33"),
    ({"scale": np.inf}, VALUE, "scale has inf"),
    ({"k_prior": GOOD["k"]}, VALUE, "have 1 of 3 values"),
    (PRIOR | {"scale": None}, VALUE, "scale has None"),
    (PRIOR | {"prior_used_len": 31}, VALUE, "prior_used_len has 31"),
    (PRIOR | {"prior_used_len": 1.5}, SHAPE, "prior_used_len"),
    (PRIOR | {"k_prior": draw(1, 30, 7)}, SHAPE, "k_prior has shape"),
    (
        PRIOR | {"bound_min": np.zeros((20, 1))},
        VALUE,
        "bound_min or bound_max has values",
    ),
    ({"bound_min": np.zeros((20, 1)), "q_stride": 2, "scale": 1.0}, VALUE, "bounds"),
    ({"bound_max": np.zeros(20), "scale": 1.0}, SHAPE, "bound_max"),
    ({"sink": np.zeros((1, 1))}, SHAPE, "sink has shape"),
    ({"lnc": 3}, SHAPE, "lnc has 3"),
    ({"lnc": 1.0}, SHAPE, "lnc has 1.0"),
    ({"lnc": True}, SHAPE, "lnc has True"),
    ({"lnc": "x"}, SHAPE, "lnc has 'x'"),
    ({"causal": "no"}, VALUE, "causal has 'no'"),
    ({"causal": 1}, VALUE, "causal has 1"),
    ({"tp_q": None}, VALUE, "tp_q has None"),
    ({"tp_k": 0}, VALUE, "tp_k has 0"),
    ({"tp_out": []}, VALUE, "tp_out has "),
    ({"window": 1.5, "scale": 1.0}, VALUE, "window has 1.5"),
    ({"window": "x", "scale": 1.0}, VALUE, "window has 'x'"),
    ({"window": True, "scale": 1.0}, VALUE, "window has True"),
    ({"q_offset": 1.5}, VALUE, "q_offset has 1.5"),
    ({"q_offset": None}, VALUE, "q_offset has None"),
    ({"q_offset": 2**31}, VALUE, "q_offset has 2147483648"),
    ({"q_offset": 2**24 - 19}, VALUE, "last row sits at 16777216"),
    ({"q_stride": 1.5}, VALUE, "q_stride has 1.5"),
    ({"scale": "x"}, VALUE, "scale has 'x'"),
    ({"scale": True}, VALUE, "scale has True"),
    ({"scale": [1.0]}, VALUE, "scale has .1.0."),
    ({"scale": 10**400}, VALUE, "scale has 1000"),
    ({"scale": 1e39}, VALUE, "scale has 1e.39"),
    ({"sink": np.full((2, 1), np.nan)}, VALUE, "sink has NaN"),
    ({"sink": np.float32([[0], [np.inf]])}, VALUE, "sink has .inf"),
    ({"sink": np.float64([[0], [1e39]])}, VALUE, "sink has .inf."),
    ({"bound_min": np.full((20, 1), np.nan), "scale": 1.0}, VALUE, "bound_min has"),
    (BOUNDS | {"bound_max": np.full((20, 1), 3.5)}, VALUE, "bound_max has .3.5."),
    (BOUNDS | {"bound_min": np.full((20, 1), 0.5)}, VALUE, "bound_min has .0.5."),
    (BOUNDS | {"bound_max": np.full((20, 1), 3 + 1e-9)}, VALUE, "bound_max has .3.0"),
    ({"q": [[1], [1, 2]]}, SHAPE, "q has .*one length"),
    ({"q": None}, TYPE, "q has dtype object"),
    ({"sink": [[1], [1, 2]]}, SHAPE, "sink has .*one length"),
    (PRIOR | {"k_prior": [[1], [1, 2]]}, SHAPE, "k_prior has .*one length"),
    (PRIOR | {"prior_used_len": [[1], [1, 2]]}, SHAPE, "prior_used_len has .*one"),
    ({"spec": None}, flashlib.MachineError, "spec has None"),
    ({"spec": NC_V2}, flashlib.MachineError, "generation 3"),
]


def test_the_longest_sequences_are_not_refused():
    check_sizes(CteSizes(1, 1, 131072, 131072, 1, prior=131072))


@pytest.mark.parametrize("dtype", [np.int64, np.float32, np.float16, np.uint8])
def test_bounds_of_any_type_that_are_whole(dtype):
    q, k, v = draw(1, 5, 8), draw(1, 9, 8, seed=1), draw(1, 9, 8, seed=2)
    low, high = np.array([0, 0, 1, 2, 3]), np.array([1, 2, 4, 4, 9])
    key = np.arange(9)
    mask = (key >= low[:, None]) & (key < high[:, None])
    bounds = {"bound_min": low[:, None], "bound_max": high[:, None]}
    bounds = {name: x.astype(dtype) for name, x in bounds.items()}
    result = attention_cte(q, k, v, scale=1.0, causal=False, **bounds)
    close(result, golden(q, k, v, 1.0, mask[None]))


def test_an_infinite_bound_leaves_its_side_open():
    q, k, v = draw(1, 5, 8), draw(1, 9, 8, seed=1), draw(1, 9, 8, seed=2)
    low, high = np.full((5, 1), -np.inf), np.full((5, 1), np.inf)
    result = attention_cte(q, k, v, scale=1.0, bound_min=low, bound_max=high)
    close(result, golden(q, k, v, 1.0, seen(5, 9)))


@pytest.mark.parametrize("change, error, words", REFUSED, ids=[r[2] for r in REFUSED])
def test_refuses_before_the_first_instruction(change, error, words):
    call = GOOD | change
    q, k, v = (call.pop(n) for n in "qkv")
    with pytest.raises(error, match=words) as caught:
        attention_cte(q, k, v, **call)
    assert "\n" not in str(caught.value)
    assert str(caught.value).count("; ") >= 2
