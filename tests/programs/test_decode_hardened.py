"""What hardened=True promises: no NaN out of nothing, no stale byte in a result."""

import numpy as np
import pytest
from programs.decode_problem import (
    BF16,
    FP8,
    TOLERANCE,
    arguments,
    call,
    changed,
    difference,
    frequencies,
    golden,
    output,
    problem,
)

import flashlib
from flashlib.programs import attention_tkg

WAYS = {
    "strided": {},
    "sequential": {"strided_mm1": False, "tp_k_prior": True},
    "pages": {"block_len": 16},
    "tiles": {"fa_tile_s_prior": 128},
    "two-cores": {"lnc": 2},
    "two-cores-tiles": {"lnc": 2, "fa_tile_s_prior": 128},
}
KINDS = {"f32": np.float32, "bf16": BF16, "fp8": FP8}


def with_garbage(p, kind, seed):
    """Overwrite every slot that no query attends, and the scratch item."""
    rng = np.random.default_rng(seed)
    attended = p.attends(clamp_end=True).any((2, 3))
    attended[p.slots - p.q.shape[2] :] = False
    fields = {}
    for name in ("k", "v"):
        x = getattr(p, name).copy()
        bits = rng.integers(0, 256, x.nbytes, np.uint8).view(x.dtype).reshape(x.shape)
        noise = bits if kind == "bytes" else np.full_like(x, kind)
        for b in range(len(x)):
            dead = np.ones(x.shape[1], bool)
            if b < p.q.shape[0]:
                dead[: p.slots] = ~attended[:, b]
            x[b, dead] = noise[b, dead]
        fields[name] = x
    return changed(p, **fields)


@pytest.mark.parametrize("dtype", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("how", WAYS.values(), ids=WAYS)
def test_masked_bytes_change_no_bit(how, dtype):
    p = problem(2, 2, 2, 512, 512, 64, pos=[300, 17], dtype=dtype)
    clean = call(p, **how, hardened=True).out
    assert np.isfinite(clean.astype(np.float32)).all()
    for seed, kind in enumerate((np.nan, -np.inf, "bytes")):
        dirty = call(with_garbage(p, kind, seed), **how, hardened=True).out
        assert dirty.tobytes() == clean.tobytes()


@pytest.mark.parametrize("how", WAYS.values(), ids=WAYS)
def test_values_that_only_other_queries_attend(how):
    """A window ends and starts at another slot for each query; so do active rows."""
    paged = "block_len" in how
    p = problem(1, 2, 3, 512, 512, 16, pos=[200], window=40, paged=paged)
    clean = output(p, call(p, **how, hardened=True))
    v = p.v.copy()
    v[0, 161] = np.nan  # the first slot of query 0, before those of 1 and 2
    v_active = p.v_active.copy()
    v_active[0, 2] = np.nan  # seen by query 2 alone
    dirty = output(p, call(changed(p, v=v, v_active=v_active), **how, hardened=True))
    assert np.isnan(dirty[..., 0]).all() and np.isnan(dirty[..., 2]).all()
    np.testing.assert_array_equal(dirty[..., 1], clean[..., 1])


@pytest.mark.parametrize("how", WAYS.values(), ids=WAYS)
def test_nothing_else_changes(how):
    p = problem(2, 2, 3, 512, 512, 32, sink=True, pos=[300, 400])
    faithful, hardened = (call(p, **how, hardened=h) for h in (False, True))
    np.testing.assert_array_equal(faithful.out, hardened.out)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("lnc", [1, 2])
def test_equals_float64(kind, lnc):
    for how in ({}, {"block_len": 32}, {"fa_tile_s_prior": 128}):
        p = problem(2, 3, 4, 512, 512, 64, dtype=kind, sink=True)
        result = call(p, **how, lnc=lnc, hardened=True)
        assert difference(p, result, golden(p)) <= TOLERANCE[p.q.dtype.name]
    if kind != FP8:
        how = {"rope": frequencies(64)}
        result = call(p, **how, lnc=lnc, hardened=True)
        want = golden(p, how["rope"])
        assert difference(p, result, want) <= TOLERANCE[p.q.dtype.name]


@pytest.mark.parametrize("window", [1, 2, 3, 8, 100])
@pytest.mark.parametrize("how", WAYS.values(), ids=WAYS)
def test_window_ends_are_clamped(how, window):
    """Also windows shorter than the queries: a clamped end is not taken for a wrap."""
    paged = "block_len" in how
    p = problem(2, 2, 4, 512, 512, 16, window=window, paged=paged, pos=[2, 400])
    want = golden(p, attends=p.attends(clamp_end=True))
    assert difference(p, call(p, **how, hardened=True), want) <= 1e-5


@pytest.mark.parametrize("how", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("sink", [False, True])
def test_rows_without_keys_are_zero(how, sink):
    p = problem(1, 2, 2, 512, 512, 16, sink=sink)
    p = changed(p, active=np.zeros((2, 1, 2, 2), bool), pos=np.zeros((1, 2), int))
    out = call(p, **how, hardened=True).out
    assert out.tobytes() == np.zeros_like(out).tobytes()
    p = changed(p, sink=None if p.sink is None else np.full((2, 1), -np.inf, "f4"))
    assert not output(p, call(p, **how, hardened=True)).any()


@pytest.mark.parametrize("how", WAYS.values(), ids=WAYS)
def test_what_rounds_to_nothing_is_zero_without_a_sign(how):
    """One of 301 equal keys has the smallest negative value there is."""
    p = problem(1, 2, 2, 512, 512, 16, pos=[300])
    v = np.zeros_like(p.v)
    v[0, 7] = np.nextafter(np.float32(0), np.float32(-1))
    zero = {"q": np.zeros_like(p.q), "v_active": np.zeros_like(p.v_active)}
    out = call(changed(p, v=v, **zero), **how, hardened=True).out
    assert out.tobytes() == np.zeros_like(out).tobytes()


@pytest.mark.parametrize("lnc", [1, 2])
@pytest.mark.parametrize("pos", [0, 1, 127, 128, 300])
def test_leading_masked_tiles_give_numbers(pos, lnc):
    p = problem(1, 2, 1, 1024, 1024, 16, pos=[pos])
    how = {"fa_tile_s_prior": 128, "lnc": lnc, "hardened": True}
    assert difference(p, call(p, **how), golden(p)) <= 1e-5


@pytest.mark.parametrize("lnc", [1, 2])
def test_stale_table_entries(lnc):
    p = problem(2, 2, 2, 1024, 1024, 16, pos=[100, 300])
    args, more = arguments(p, block_len=32, lnc=lnc, hardened=True)
    clean = attention_tkg(*args, **more)
    stale = more["active_blocks_table"].astype(np.int64)
    stale[0, 4:] = [-1, 2**32 - 1, 10**6, args[3].shape[0]] * 7
    stale[1, 10:] = -7
    dirty = attention_tkg(*args, **(more | {"active_blocks_table": stale}))
    assert dirty.out.tobytes() == clean.out.tobytes()
    stale[1, 9] = -7
    with pytest.raises(flashlib.OutOfBoundsError, match=r"\[1, 9\]"):
        attention_tkg(*args, **(more | {"active_blocks_table": stale}))
    with pytest.raises(flashlib.OutOfBoundsError, match=r"\[0, 4\]"):
        more |= {"active_blocks_table": stale, "hardened": False}
        attention_tkg(*args, **more)


def in_paged_order(p, block_len, cores):
    """A mask in (fold, offset in block, partition) order, per core, and its order."""
    share = p.slots // cores
    order = []
    for core in range(cores):
        folds = np.arange(share).reshape(-1, 128, block_len)
        order.append(core * share + folds.transpose(0, 2, 1).ravel())
    return np.concatenate(order)


@pytest.mark.parametrize("lnc, resized", [(1, 8), (2, 4)])
def test_given_masks_of_pages(lnc, resized):
    p = problem(1, 2, 2, 1024, 1024, 16, pos=[300])
    order = in_paged_order(p, resized, lnc)
    mask = p.attends()[order]
    how = {"block_len": 32, "given_mask": mask, "lnc": lnc}
    for hardened in (False, True):
        result = call(p, **how, hardened=hardened)
        assert difference(p, result, golden(p)) <= 1e-5
    args, more = arguments(p, **how, hardened=True)
    clean = attention_tkg(*args, **more)
    stale = more["active_blocks_table"].astype(np.int64)
    stale[0, 10:] = -3
    dirty = attention_tkg(*args, **(more | {"active_blocks_table": stale}))
    assert dirty.out.tobytes() == clean.out.tobytes()
