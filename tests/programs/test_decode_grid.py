"""The decode kernel against float64, over layouts, caches, types, tiles and cores."""

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
    problem,
    rotate,
)

from flashlib.machine import NC_V3, NC_V4, timelines
from flashlib.programs import attention_tkg
from flashlib.programs.tkg.sizes import TkgSizes, sizes_of

# batch, heads, seq, slots, full, d; then how the kernel runs and what is drawn
SMALL = (2, 3, 5, 512, 640, 64)
LONG = (2, 2, 3, 1536, 1536, 32)
FLAT = [
    ("strided", SMALL, {}, {}),
    ("strided-transposed", SMALL, {"tp_k_prior": True}, {}),
    ("sequential", SMALL, {"strided_mm1": False}, {}),
    (
        "sequential-transposed",
        SMALL,
        {"strided_mm1": False, "tp_k_prior": True},
        {},
    ),
    ("out-on-chip", SMALL, {"out_in_sb": True}, {}),
    ("sink", SMALL, {}, {"sink": True}),
    ("sink-sequential", SMALL, {"strided_mm1": False}, {"sink": True}),
    ("window", SMALL, {}, {"window": 32, "pos": [3, 300]}),
    ("window-sink", SMALL, {"tp_k_prior": True}, {"window": 100, "sink": True}),
    ("one-of-each", (1, 1, 1, 128, 128, 1), {}, {}),
    ("one-query", (3, 4, 1, 256, 300, 128), {"tp_k_prior": True}, {}),
    ("many-columns", (3, 10, 5, 256, 256, 32), {}, {"sink": True}),
    ("batch-halves", (4, 8, 7, 256, 256, 64), {}, {"sink": True}),
    (
        "batch-halves-on-chip",
        (4, 8, 7, 256, 256, 64),
        {"out_in_sb": True, "strided_mm1": False},
        {},
    ),
    ("widest", (1, 512, 1, 128, 128, 16), {}, {}),
    ("tiles", LONG, {"fa_tile_s_prior": 256}, {}),
    ("tiles-sink", LONG, {"fa_tile_s_prior": 512}, {"sink": True}),
    (
        "tiles-sequential",
        LONG,
        {"fa_tile_s_prior": 640, "strided_mm1": False, "out_in_sb": True},
        {"sink": True},
    ),
    ("tiles-window", LONG, {"fa_tile_s_prior": 512}, {"window": 700, "pos": 2 * [900]}),
    ("no-tiles", LONG, {"fa_tile_s_prior": 256, "enable_fa_s_prior_tiling": False}, {}),
    ("tiles-columns", (3, 10, 5, 1024, 1024, 32), {"fa_tile_s_prior": 256}, {}),
    ("rope-64", SMALL, {"rope": frequencies(64)}, {}),
    (
        "rope-128",
        (1, 8, 4, 256, 256, 128),
        {"rope": frequencies(128), "strided_mm1": False, "tp_k_prior": True},
        {"sink": True},
    ),
    (
        "rope-on-chip",
        SMALL,
        {"rope": frequencies(64), "qk_in_sb": True, "k_out_in_sb": True},
        {},
    ),
    (
        "rope-tiles",
        LONG[:-1] + (64,),
        {"rope": frequencies(64), "fa_tile_s_prior": 512},
        {},
    ),
]
PAGED = [
    ("pages-16", (2, 3, 5, 4096, 4096, 64), {"block_len": 16}, {}),
    ("pages-32", (2, 3, 5, 1024, 1024, 128), {"block_len": 32}, {"sink": True}),
    ("pages-128", (2, 2, 2, 1024, 1024, 64), {"block_len": 128}, {}),
    ("pages-2", (1, 2, 5, 256, 256, 32), {"block_len": 16}, {}),
    (
        "pages-window",
        (2, 2, 4, 2048, 2048, 64),
        {"block_len": 16, "out_in_sb": True},
        {"window": 300, "paged": True, "sink": True},
    ),
    (
        "pages-tiles",
        (2, 2, 4, 6144, 6144, 32),
        {"block_len": 16, "fa_tile_s_prior": 2048},
        {"sink": True},
    ),
    ("pages-48", (1, 2, 3, 768, 768, 32), {"block_len": 48}, {}),
]
NARROW = [
    ("bf16", SMALL, {}, {"dtype": BF16}),
    ("bf16-transposed", SMALL, {"tp_k_prior": True}, {"dtype": BF16, "sink": True}),
    ("bf16-tiles", LONG, {"fa_tile_s_prior": 512}, {"dtype": BF16}),
    ("bf16-rope", SMALL, {"rope": frequencies(64)}, {"dtype": BF16}),
    ("bf16-pages", (1, 2, 5, 2048, 2048, 128), {"block_len": 16}, {"dtype": BF16}),
    ("bf16-pages-64", (1, 2, 5, 2048, 2048, 64), {"block_len": 32}, {"dtype": BF16}),
    ("fp8", SMALL, {"tp_k_prior": True}, {"dtype": FP8}),
    ("fp8-plain", SMALL, {"strided_mm1": False}, {"dtype": FP8, "sink": True}),
    ("fp8-pages", (2, 2, 4, 1024, 1024, 64), {"block_len": 16}, {"dtype": FP8}),
    ("fp8-window", SMALL, {"tp_k_prior": True}, {"dtype": FP8, "window": 64}),
]
GRID = FLAT + PAGED + NARROW


@pytest.mark.parametrize("lnc", [1, 2])
@pytest.mark.parametrize("name, sizes, how, drawn", GRID, ids=[g[0] for g in GRID])
def test_equals_float64(name, sizes, how, drawn, lnc):
    p = problem(*sizes, **drawn)
    result = call(p, lnc=lnc, **how)
    want = golden(p, how.get("rope"))
    assert len(result.traces) == len(result.machines) == lnc
    assert result.out.dtype == (BF16 if p.q.dtype == FP8 else p.q.dtype)
    assert difference(p, result, want) <= TOLERANCE[p.q.dtype.name]


def test_the_grid_is_wide_enough():
    assert 2 * len(GRID) >= 60


@pytest.mark.parametrize("lnc", [1, 2])
@pytest.mark.parametrize("on_chip", [False, True])
def test_rotated_keys_are_handed_out(on_chip, lnc):
    p = problem(*SMALL)
    freqs = frequencies(64)
    result = call(p, rope=freqs, k_out_in_sb=on_chip, lnc=lnc)
    want = rotate(p.k_active, p.pos, freqs)
    if on_chip:
        got = result.k_out.reshape(64, 2, 5).transpose(1, 2, 0)
    else:
        assert result.k_out.shape == (2, 1, 64, 5)
        got = result.k_out[:, 0].transpose(0, 2, 1)
    np.testing.assert_allclose(got, want, atol=2e-4)
    assert call(p).k_out is None


@pytest.mark.parametrize("kind", [bool, np.uint8, np.float32])
@pytest.mark.parametrize("strided", [True, False])
@pytest.mark.parametrize("lnc", [1, 2])
def test_a_given_mask_in_slot_order(strided, kind, lnc):
    p = problem(*SMALL)
    rng = np.random.default_rng(3)
    mask = rng.random((512, 2, 3, 5)) < 0.3
    result = call(p, given_mask=mask.astype(kind), strided_mm1=strided, lnc=lnc)
    assert difference(p, result, golden(p, attends=mask)) <= 1e-5


def test_a_tree_among_the_active_tokens():
    p = problem(*SMALL)
    tree = np.eye(5, dtype=bool)
    tree[0] = True
    p = changed(p, active=np.broadcast_to(tree[:, None, None], (5, 2, 3, 5)))
    for how in ({}, {"strided_mm1": False}, {"lnc": 2}):
        assert difference(p, call(p, **how), golden(p)) <= 1e-5


def test_batch_tiles_change_nothing():
    """16 MiB of scores hold three items here, so five items take two tiles."""
    p = problem(5, 5, 8, 16384, 16384, 4)
    how = {"enable_fa_s_prior_tiling": False}
    result = call(p, **how)
    counts = result.traces[0].histogram(by=("step", "op"))
    assert counts["exp", "activation"] == 2
    assert difference(p, result, golden(p)) <= 1e-5


def test_rope_positions_of_their_own():
    p = problem(*SMALL)
    freqs = frequencies(64)
    args, more = arguments(p, rope=freqs)
    moved = attention_tkg(*args, **(more | {"rope_pos_ids": p.pos + 7}))
    want = golden(changed(p, pos=p.pos + 7), freqs, attends=p.attends())
    assert difference(p, moved, want) <= 1e-5


@pytest.mark.parametrize("kind", [np.int64, np.int32, np.uint8, np.float32])
def test_positions_of_any_type(kind):
    p = problem(1, 1, 2, 128, 128, 4, pos=[40])
    want = golden(p)
    p = changed(p, pos=p.pos.astype(kind))
    assert difference(p, call(p), want) <= 1e-5


def test_arguments_are_left_alone():
    p = problem(*SMALL, sink=True)
    args, more = arguments(p, block_len=0, tp_k_prior=True)
    arrays = [*args, more["sink"], more["pos_ids"]]
    before = [a.copy() for a in arrays]
    attention_tkg(*args, **more)
    for a, b in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(a, b)


FOOTPRINTS = ("strided", "pages-tiles", "tiles-columns", "fp8-pages", "widest", "fp8")


@pytest.mark.parametrize("hardened", [False, True])
@pytest.mark.parametrize("case", [g for g in GRID if g[0] in FOOTPRINTS], ids=str)
def test_the_footprint_is_foreseen(case, hardened):
    _, sizes, how, drawn = case
    p = problem(*sizes, **drawn)
    machine = call(p, **how, hardened=hardened).machines[0]
    config = arguments(p, **how)[1]["config"]
    s = sizes_of(*p.q.shape, config, 1, how.get("block_len", 0))
    assert machine.sbuf.peak <= s.sbuf_bytes(p.q.itemsize, p.k.itemsize, hardened)


def test_published_size_with_published_tiles():
    """10,240 slots of head_dim 128 in float32: tiles of 8,192 and 2,048."""
    p = problem(1, 1, 5, 10240, 10240, 128, sink=True)
    result = call(p, tp_k_prior=True)
    assert result.traces[0].histogram(by=("step", "op"))["exp", "activation"] == 2
    assert difference(p, result, golden(p)) <= 1e-5


def test_the_next_generation_exponentiates_block_by_block():
    p = problem(*SMALL)
    for spec, count in ((NC_V3, 1), (NC_V4, 4)):
        args, more = arguments(p)
        result = attention_tkg(*args, **more, spec=spec)
        counts = result.traces[0].histogram(by=("step", "op"))
        assert counts["exp", "activation"] == counts["exp", "tensor_tensor"] == count
        assert difference(p, result, golden(p)) <= 1e-5


@pytest.mark.parametrize("how", [{"tp_k_prior": True}, {"block_len": 16}])
def test_wide_queries_over_narrow_keys(how):
    """bfloat16 queries and probabilities over a float8 cache."""
    p = problem(2, 3, 5, 512, 640, 64, dtype=FP8)
    if how.get("block_len"):
        p = problem(2, 3, 5, 512, 512, 64, dtype=FP8)
    p = changed(p, q=p.q.astype(BF16))
    result = call(p, **how)
    assert result.out.dtype == BF16
    assert difference(p, result, golden(p)) <= 1e-2


@pytest.mark.parametrize("lnc", [1, 2])
def test_runs_have_a_timeline(lnc):
    p = problem(2, 2, 2, 768 * lnc, 768 * lnc, 32, sink=True)
    result = call(p, fa_tile_s_prior=256, lnc=lnc)
    lines = timelines(result.traces)
    assert len(lines) == lnc
    for line, trace in zip(lines, result.traces, strict=True):
        assert len(line.events) == len(trace) and line.total > 0


def test_published_sizes():
    """Block lengths after resizing, tiles and groups as printed for the kernel."""
    resized = {
        (8192, 16, 2): 16,
        (10240, 16, 1): 16,
        (10240, 16, 2): 8,
        (16640, 16, 2): 1,
        (82432, 16, 2): 2,
        (4096, 128, 1): 32,
        (26624, 32, 2): 8,
        (256, 16, 1): 2,
    }
    for (slots, page, lnc), want in resized.items():
        s = TkgSizes(1, 1, 5, 64, slots, lnc, 8192, False, page)
        assert s.block_len == want
    tiles = {10240: 2, 18432: 3, 24576: 3, 82432: 11, 8192: 1}
    for slots, count in tiles.items():
        assert len(TkgSizes(1, 1, 5, 64, slots, 1, 8192, True, 0).tiles) == count
    groups = {16: 32, 17: 30, 64: 8, 256: 2, 413: 1, 512: 1}
    for width, blocks in groups.items():
        assert TkgSizes(1, width, 1, 64, 128, 1, 8192, True, 0).per_group == blocks
