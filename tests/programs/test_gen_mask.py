"""Generated masks, exactly, over kinds, layouts, tiles, cores and memories."""

import ml_dtypes
import numpy as np
import pytest
from programs.decode_problem import call, difference, golden, problem

import flashlib
from flashlib.programs import TkgConfig, gen_mask_tkg

LAYOUTS = {
    "strided": {},
    "sequential": {"strided_mm1": False},
    "pages": {"block_len": 16},
    "pages-128": {"block_len": 128},
}
KINDS = {
    "validity": {},
    "window": {"window": 64},
    "wrap": {"window": 300, "pos": [3, 40]},
}


def slots_of(n, unit, first=0):
    """Slot at every cell, written out one by one."""
    grid = np.empty((128, n), int)
    for p in range(128):
        for f in range(n):
            fold, j = divmod(f, unit)
            grid[p, f] = first + fold * 128 * unit + p * unit + j
    return grid


def unit_of(how, n, resized):
    if "block_len" in how:
        return resized
    return n if how.get("strided_mm1", True) else 1


@pytest.mark.parametrize("active", [False, True])
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("how", LAYOUTS.values(), ids=LAYOUTS)
def test_on_chip(how, kind, active):
    p = problem(2, 3, 4, 4096, 4096, 4, paged="block_len" in how, **kind)
    config = TkgConfig(curr_sprior=4096, full_sprior=4096, **how)
    given = p.attends()[4092:] if active else None
    result = gen_mask_tkg(
        p.pos, config=config, n_heads=3, start_pos_ids=p.start, active_mask=given
    )
    unit = unit_of(how, 32, min(32, how.get("block_len", 0)))
    want = p.attends()
    if not active:
        slot = np.arange(4092, 4096)[:, None, None, None]
        end = p.pos[None, :, None, :]
        inside = slot < p.pos[None, :, None, :1] if p.start is None else slot < end
        if p.start is not None:
            first = p.start[None, :, None, :]
            wraps = first > end
            inside = np.where(
                wraps, (slot >= first) | (slot < end), (slot >= first) & (slot < end)
            )
        want[4092:] = inside
    assert result.mask.shape == (128, 32, 2, 3, 4)
    np.testing.assert_array_equal(result.mask, want[slots_of(32, unit)])


@pytest.mark.parametrize(
    "name, unit", [("strided", 16), ("sequential", 1), ("pages", 16)]
)
def test_tiles_are_parts_of_the_whole(name, unit):
    """A tile holds its slots in a layout of its own, here of 2,048 slots."""
    p = problem(1, 2, 2, 8192, 8192, 4, pos=[3000])
    config = TkgConfig(curr_sprior=8192, full_sprior=8192, **LAYOUTS[name])
    for offset in (0, 2048, 4096):
        result = gen_mask_tkg(
            p.pos, config=config, n_heads=2, s_prior_offset=offset, s_prior_tile=2048
        )
        grid = slots_of(16, unit, offset)
        np.testing.assert_array_equal(result.mask[..., 0, 0, 0], grid < 3000)


def test_two_cores_on_chip():
    """Halves of the slots, each with the active mask at its end; or of the batch."""
    pos = np.array([[300, 301]])
    config = TkgConfig(curr_sprior=1024, full_sprior=1024)
    ones = np.ones((2, 1, 1, 2), bool)
    mask = gen_mask_tkg(pos, config=config, n_heads=1, lnc=2, active_mask=ones).mask
    assert mask.shape == (2, 128, 4, 1, 1, 2)
    for core in (0, 1):
        grid = slots_of(4, 4, 512 * core)
        want = (grid < 300) | (grid >= 512 * core + 510)
        np.testing.assert_array_equal(mask[core, ..., 0, 0, 0], want)
    pos = np.arange(4)[:, None] * 100
    config = TkgConfig(curr_sprior=128, full_sprior=128)
    mask = gen_mask_tkg(pos, config=config, n_heads=3, lnc=2).mask
    assert mask.shape == (2, 128, 1, 2, 3, 1)
    assert mask.sum((1, 2, 4, 5)).tolist() == [[0, 300], [384, 384]]


@pytest.mark.parametrize("lnc", [1, 2])
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("block_len", [0, 16])
def test_in_hbm(block_len, kind, lnc):
    """Row f * 128 + p: strided over all slots when flat, by pages per core else."""
    p = problem(2, 3, 4, 4096, 4096, 4, paged=block_len > 0, **kind)
    config = TkgConfig(curr_sprior=4096, full_sprior=4096, block_len=block_len)
    want = p.attends()
    made = gen_mask_tkg(
        p.pos,
        config=config,
        n_heads=3,
        start_pos_ids=p.start,
        active_mask=want[4092:],
        layout="hbm",
        lnc=lnc,
    ).mask
    assert made.shape == want.shape and made.dtype == np.float32
    grid = slots_of(32, block_len or 32)
    np.testing.assert_array_equal(made, want[grid.T.ravel()])


@pytest.mark.parametrize("block_len", [3, 24, 128])
def test_pages_that_64_free_positions_do_not_hold_whole(block_len):
    """Masks are written 64 free positions at once, and pages are never cut."""
    n = block_len * -(-100 // block_len)
    p = problem(1, 1, 2, 128 * n, 128 * n, 4, paged=True)
    config = TkgConfig(
        curr_sprior=128 * n,
        full_sprior=128 * n,
        block_len=block_len,
        enable_fa_s_prior_tiling=False,  # else pages are shortened to fit the tiles
    )
    want = p.attends()
    made = gen_mask_tkg(
        p.pos, config=config, n_heads=1, active_mask=want[-2:], layout="hbm"
    ).mask
    np.testing.assert_array_equal(made, want[slots_of(n, block_len).T.ravel()])


@pytest.mark.parametrize(
    "layout", ["", "SBUF", None, 3, ["sbuf"], np.array(["sbuf", "hbm"])], ids=str
)
def test_a_layout_that_is_none(layout):
    config = TkgConfig(curr_sprior=128, full_sprior=128)
    with pytest.raises(
        flashlib.ArgumentError, match="layout has .*; expected 'sbuf' or"
    ):
        gen_mask_tkg(np.array([[5]]), config=config, n_heads=1, layout=layout)


@pytest.mark.parametrize("lnc", [1, 2])
def test_the_kernel_reads_paged_masks_from_hbm(lnc):
    p = problem(2, 3, 4, 4096, 4096, 8)
    config = TkgConfig(curr_sprior=4096, full_sprior=4096, block_len=16)
    active = p.attends()[4092:]
    made = gen_mask_tkg(
        p.pos, config=config, n_heads=3, active_mask=active, layout="hbm", lnc=lnc
    ).mask
    result = call(p, given_mask=made, block_len=16, lnc=lnc)
    assert difference(p, result, golden(p)) <= 1e-5


def test_more_active_rows_than_free_positions():
    """256 slots: eight active rows over four partitions and both halves."""
    p = problem(1, 1, 8, 256, 256, 4, pos=[100])
    config = TkgConfig(curr_sprior=256, full_sprior=256)
    want = p.attends()
    for lnc in (1, 2):
        made = gen_mask_tkg(
            p.pos,
            config=config,
            n_heads=1,
            active_mask=want[248:],
            layout="hbm",
            lnc=lnc,
        ).mask
        np.testing.assert_array_equal(made, want[slots_of(2, 2).T.ravel()])


@pytest.mark.parametrize("dtype", [np.float32, np.uint8, ml_dtypes.bfloat16])
def test_types(dtype):
    config = TkgConfig(curr_sprior=128, full_sprior=128)
    for layout in ("sbuf", "hbm"):
        result = gen_mask_tkg(
            np.array([[5]]), config=config, n_heads=1, layout=layout, dtype=dtype
        )
        assert result.mask.dtype == dtype
        assert result.mask.astype(float).sum() == 5


def test_costs():
    """Validity: one comparison and one copy per item. Windows: eight per query."""
    config = TkgConfig(curr_sprior=1024, full_sprior=1024)
    pos = 500 + np.arange(3) + np.zeros((2, 1), int)
    plain = gen_mask_tkg(pos, config=config, n_heads=4).traces[0]
    counts = plain.histogram(by=("step", "op"))
    assert counts["mask", "iota"] == 1 and counts["mask", "tensor_scalar"] == 2
    assert counts["mask", "tensor_copy"] == 1 + 2
    bands = gen_mask_tkg(pos, config=config, n_heads=4, start_pos_ids=pos - 9).traces[0]
    counts = bands.histogram(by=("step", "op"))
    vector = counts["mask", "tensor_scalar"] + counts["mask", "tensor_tensor"]
    assert vector == 2 * 3 * 8 and counts["mask", "tensor_copy"] == 2 * 3 * 4
    engines = {r.engine for r in bands if r.op == "tensor_copy"}
    assert engines == {"scalar", "vector"}


def test_a_window_as_large_as_the_cache_cannot_be_said():
    """start == end is an empty band: [start, end) has no spelling for all slots."""
    config = TkgConfig(curr_sprior=128, full_sprior=128)
    pos = np.array([[40]])
    mask = gen_mask_tkg(pos, config=config, n_heads=1, start_pos_ids=pos).mask
    assert mask.sum() == 0
