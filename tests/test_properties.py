"""Laws that hold for any call, searched with hypothesis, on every backend."""

import numpy as np
import pytest
from conftest import require
from ways import Way, same_bits

import flashlib
from flashlib import AttentionOutput, merge_states
from flashlib.contract.dense import dense as pair_by_pair
from flashlib.layout import repeat_kv
from flashlib.masks import as_dense
from flashlib.problem import attention_problem
from flashlib.testing import assert_accurate, make_qkv, oracle

hypothesis = require("hypothesis")
st = hypothesis.strategies

SEARCH = hypothesis.settings(
    max_examples=30,
    deadline=None,
    derandomize=True,
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture],
)

BACKENDS = ("materialized", *flashlib.available_backends())
SIDES = st.one_of(st.none(), st.integers(0, 9))
every_backend = pytest.mark.parametrize("backend", BACKENDS)


@st.composite
def calls(draw, heats=(0.1, 1.0, 5.0), scales=(None, 1.0, -0.5)):
    """A call: q, k, v, options and a tile."""
    group, n_kv_heads = draw(st.integers(1, 3)), draw(st.integers(1, 2))
    seq_q, seq_k = draw(st.integers(1, 12)), draw(st.integers(1, 12))
    n_heads = group * n_kv_heads
    q, k, v = make_qkv(
        seq_q,
        seq_k,
        n_heads=n_heads,
        n_kv_heads=n_kv_heads,
        head_dim=draw(st.sampled_from((1, 2, 7, 8, 33))),
        head_dim_v=draw(st.sampled_from((1, 3, 16))),
        dtype=draw(st.sampled_from((np.float32, np.float64))),
        seed=draw(st.integers(0, 2**16)),
        heat=draw(st.sampled_from(heats)),
    )
    random = np.random.default_rng(draw(st.integers(0, 2**16)))
    options = {
        "causal": draw(st.booleans()),
        "window": draw(st.one_of(st.none(), st.tuples(SIDES, SIDES))),
        "scale": draw(st.sampled_from(scales)),
        "softcap": draw(st.sampled_from((None, 3.0))),
    }
    full = (n_heads, seq_q, seq_k)
    shape = draw(st.sampled_from((full, full[1:], (1, 1, seq_k), (n_heads, seq_q, 1))))
    if draw(st.booleans()):
        options["mask"] = random.random(shape) < draw(st.sampled_from((0.3, 0.8)))
    if draw(st.booleans()):
        bias = random.standard_normal(shape).astype(q.dtype)
        options["bias"] = np.where(random.random(shape) < 0.3, -np.inf, bias)
    if draw(st.booleans()):
        options["sink"] = random.standard_normal(n_heads)
    return (q, k, v), options, draw(st.integers(1, 13))


def dense(qkv, options):
    return as_dense(attention_problem(*qkv, **options)[0])


@SEARCH
@hypothesis.given(call=calls())
def test_the_oracle_agrees_with_a_float64_route_of_its_own(call):
    (q, k, v), options, _ = call
    got, want = oracle(q, k, v, **options), pair_by_pair(q, k, v, **options)
    np.testing.assert_allclose(got.lse, want.lse, rtol=1e-12, atol=1e-12)
    limit = 1e-12 * float(np.abs(v).max(initial=1))
    np.testing.assert_allclose(got.out, want.out, rtol=0, atol=limit)


# Scores of about 1: the rule compares the largest errors of two ways to round, and
# over few rows of larger scores that comparison is a lottery.
MILD = calls(heats=(0.1, 1.0), scales=(None, 0.2, -0.1))


@every_backend
@SEARCH
@hypothesis.given(call=MILD)
def test_accuracy_rule(backend, call):
    (q, k, v), options, tile = call
    result = Way(backend, tile, q.dtype)(q, k, v, **options)
    assert_accurate(result, q, k, v, **options)


@every_backend
@SEARCH
@hypothesis.given(call=calls(), junk=st.sampled_from((np.nan, np.inf, -np.inf, 1e30)))
def test_what_nobody_attends_changes_no_bit(backend, call, junk):
    (q, k, v), options, tile = call
    run, seen = Way(backend, tile, q.dtype), dense((q, k, v), options)
    plain = run(q, k, v, **options)
    unread = ~seen.reshape(k.shape[1], -1, len(k)).any(axis=1).T
    k[unread], v[unread] = junk, junk
    if "bias" in options:
        bias = np.broadcast_to(options["bias"], seen.shape).copy()
        bias[~seen & (bias != -np.inf)] = junk
        options = {**options, "bias": bias}
    assert same_bits(run(q, k, v, **options), plain)


@every_backend
@SEARCH
@hypothesis.given(call=calls(), place=st.integers(0, 11), where=st.sampled_from("kv"))
def test_a_nan_shows_in_exactly_the_rows_that_attend_it(backend, call, place, where):
    (q, k, v), options, tile = call
    run, j = Way(backend, tile, q.dtype), place % len(k)
    plain = run(q, k, v, **options)
    attends = dense((q, k, v), options)[:, :, j].T
    {"k": k, "v": v}[where][j] = np.nan
    result = run(q, k, v, **options)
    assert np.isnan(result.out[attends]).all()
    assert same_bits([result.out[~attends]], [plain.out[~attends]])
    lse_reads = attends if where == "k" else np.zeros_like(attends)
    assert np.isnan(result.lse[lse_reads]).all()
    assert same_bits([result.lse[~lse_reads]], [plain.lse[~lse_reads]])


@every_backend
@SEARCH
@hypothesis.given(call=calls())
def test_grouped_heads_equal_repeated_ones(backend, call):
    (q, k, v), options, tile = call
    run, group = Way(backend, tile, q.dtype), q.shape[1] // k.shape[1]
    repeated = run(q, repeat_kv(k, group), repeat_kv(v, group), **options)
    assert same_bits(run(q, k, v, **options), repeated)


@every_backend
@SEARCH
@hypothesis.given(call=calls())
def test_a_head_does_not_know_how_many_there_are(backend, call):
    (q, k, v), options, tile = call
    run, group = Way(backend, tile, q.dtype), q.shape[1] // k.shape[1]
    together = run(q, k, v, **options)
    for h in range(q.shape[1]):
        alone = one_head(options, h, q.shape[1])
        kv = (k[:, h // group, None], v[:, h // group, None])
        result = run(q[:, h, None], *kv, **alone)
        assert same_bits(result, [x[:, h, None] for x in together])


def one_head(options, h, n_heads):
    alone = dict(options)
    for name in ("mask", "bias"):
        if name in options and options[name].ndim == 3:
            alone[name] = options[name][h % len(options[name])]
    if "sink" in options:
        alone["sink"] = options["sink"][h, None]
    return alone


@every_backend
@SEARCH
@hypothesis.given(call=calls())
def test_runs_repeat(backend, call):
    (q, k, v), options, tile = call
    run = Way(backend, tile, q.dtype)
    assert same_bits(run(q, k, v, **options), run(q.copy(), k, v, **options))


@every_backend
@SEARCH
@hypothesis.given(call=calls(), cut=st.integers(0, 12))
def test_any_split_merges_into_the_whole(backend, call, cut):
    (q, k, v), options, tile = call
    run, cut = Way(backend, tile, q.dtype), cut % (len(k) + 1)
    mask = dense((q, k, v), options)
    plain = {name: options[name] for name in ("scale", "softcap") if options[name]}
    bias = options.get("bias")
    parts = []
    for some in (slice(0, cut), slice(cut, None)):
        part = dict(plain, mask=mask[..., some])
        if bias is not None:
            part["bias"] = bias[..., some] if bias.shape[-1] > 1 else bias
        parts.append(run(q, k[some], v[some], **part))
    whole = run(q, k, v, **plain, mask=mask, **({} if bias is None else {"bias": bias}))
    close(merge_states(*parts), whole, q, k, v)


@every_backend
@SEARCH
@hypothesis.given(call=calls())
def test_a_constant_value_comes_back(backend, call):
    (q, k, v), options, tile = call
    options.pop("sink", None)
    v[...] = 3.0
    out = Way(backend, tile, q.dtype)(q, k, v, **options).out
    attends = dense((q, k, v), options).any(axis=2).T
    np.testing.assert_allclose(out[attends], 3.0, rtol=8 * np.finfo(q.dtype).eps)
    assert (out[~attends] == 0).all()


@every_backend
@SEARCH
@hypothesis.given(call=calls())
def test_one_vector_added_to_all_keys_changes_only_lse(backend, call):
    (q, k, v), options, tile = call
    options = {**options, "softcap": None, "scale": 1.0}
    options.pop("sink", None)
    # Halves and small integers: every score is exact, so only lse may move.
    q, k = (np.round(x).clip(-3, 3).astype(q.dtype) for x in (q, k))
    shift = np.linspace(-2, 2, k.shape[2]).round().astype(q.dtype)
    run = Way(backend, tile, q.dtype)
    before, after = run(q, k, v, **options), run(q, k + shift, v, **options)
    moved = before.lse + (q @ shift)
    np.testing.assert_allclose(after.lse, moved, rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(after.out, before.out, rtol=1e-4, atol=2e-4)


def close(result, whole, q, k, v):
    """Equal to the rounding of scores: a merge reads lse where it stands."""
    eps, largest = np.finfo(v.dtype).eps, float(np.abs(v).max())
    k = np.abs(repeat_kv(k, q.shape[1] // k.shape[1]))
    size = 1 + float(np.einsum("ihd,jhd->hij", np.abs(q), k).max())
    limit = 8 * eps * size
    np.testing.assert_allclose(result.out, whole.out, rtol=0, atol=limit * largest)
    np.testing.assert_allclose(result.lse, whole.lse, rtol=0, atol=limit)


@SEARCH
@hypothesis.given(call=calls(), order=st.permutations(range(4)))
def test_states_merge_in_any_order(call, order):
    (q, k, v), _, _ = call
    bounds = np.linspace(0, len(k), 5).astype(int)
    parts = [
        flashlib.flash_attention(q, k[a:b], v[a:b], backend="numpy")
        for a, b in zip(bounds[:-1], bounds[1:], strict=True)
    ]
    empty = np.zeros_like(parts[0].out)
    state = AttentionOutput(empty, np.full_like(parts[0].lse, -np.inf))
    for i in order:
        state = merge_states(state, parts[i])
    close(state, flashlib.flash_attention(q, k, v, backend="numpy"), q, k, v)
