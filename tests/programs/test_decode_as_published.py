"""Sharp cases of the decode kernel as it was published, hazards included."""

import numpy as np
import pytest
from programs.decode_problem import (
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
from flashlib.machine import Machine
from flashlib.machine.instruction import REGISTRY
from flashlib.programs import TkgConfig, attention_tkg, gen_mask_tkg
from flashlib.programs.slot_layout import SlotLayout

SIZES = (2, 3, 5, 2048, 2048, 64)


def test_tiles_leave_no_scores_behind(monkeypatch):
    """The buffer is filled with -inf for every tile, not only for the first."""
    p = problem(1, 2, 1, 256 + 128, 384, 16, pos=[200])
    how = {"fa_tile_s_prior": 256, "tp_k_prior": True}
    want = golden(p)
    assert difference(p, call(p, **how), want) <= 1e-5
    declared, filled = REGISTRY["memset"], []
    original = type(declared).run

    def once(self, machine, args, kwargs, where):
        if args[1] == -np.inf:
            filled.append(args[0])
            if len(filled) > 1:
                # what stale memory holds: the scores of the tile before
                rows = filled[0].array[:, : args[0].shape[1]]
                args[0].array[...] = rows
                args[0].storage.complete = True
                return args[0]
        return original(self, machine, args, kwargs, where)

    monkeypatch.setattr(
        type(declared),
        "run",
        lambda self, *a: once(self, *a) if self is declared else original(self, *a),
    )
    assert difference(p, call(p, **how), want) > 1e-3
    assert len(filled) == 2


WAYS = {
    "strided": {},
    "strided-transposed": {"tp_k_prior": True},
    "sequential": {"strided_mm1": False},
    "sequential-transposed": {"strided_mm1": False, "tp_k_prior": True},
    "pages": {"block_len": 16},
}


def test_layouts_agree():
    p = problem(*SIZES, sink=True)
    want = golden(p)
    results = {name: call(p, **how) for name, how in WAYS.items()}
    for result in results.values():
        assert difference(p, result, want) <= 1e-6
        traces = result.traces[0]
        item = 2048 * 64 * 4
        assert traces.bytes(step="k_load") == 2 * item
        assert traces.bytes(step="v_load") == 2 * (item + 5 * 64 * 4)
    runs = {
        name: {
            r.run_bytes
            for r in results[name].traces[0]
            if r.step == "v_load" and r.nbytes == item
        }
        for name in WAYS
    }
    assert runs["strided"] == {16 * 64 * 4} and runs["sequential"] == {64 * 4}


def test_active_cells():
    assert SlotLayout(8, 8).tail(5) == [(slice(127, 128), slice(3, 8), slice(0, 5))]
    assert SlotLayout(8, 1).tail(5) == [(slice(123, 128), slice(7, 8), slice(0, 5))]
    assert SlotLayout(32, 16).tail(5) == [(slice(127, 128), slice(27, 32), slice(0, 5))]
    for n, unit in [(8, 8), (8, 1), (32, 16), (2, 2), (1, 1), (6, 3)]:
        layout = SlotLayout(n, unit)
        grid = layout.slots()
        assert sorted(grid.ravel()) == list(range(128 * n))
        for rows in (1, 5, 8):
            found = [
                grid[c.partitions, c.free].ravel().tolist() for c in layout.tail(rows)
            ]
            assert sum(found, []) == list(range(128 * n - rows, 128 * n))


def window_counts(hardened):
    """Keys that each of three queries attends, active ones included."""
    pos = 100 + np.arange(3)[None]
    config = TkgConfig(curr_sprior=256, full_sprior=256)
    active = np.triu(np.ones((3, 3), bool))[:, None, None]
    mask = gen_mask_tkg(
        pos,
        config=config,
        n_heads=1,
        start_pos_ids=(pos - 31) % 256,
        active_mask=active,
        hardened=hardened,
    ).mask
    return mask.sum((0, 1))[0, 0].tolist()


def test_windows_of_speculated_tokens():
    assert window_counts(False) == [32, 33, 34]
    assert window_counts(True) == [32, 32, 32]


@pytest.mark.parametrize("hardened", [False, True])
def test_window_that_wraps(hardened):
    p = problem(1, 2, 4, 128, 128, 16, window=8, pos=[3])
    assert p.start[0].tolist() == [(3 + s - 7) % 128 for s in range(4)]
    want = golden(p, attends=p.attends(clamp_end=hardened))
    assert difference(p, call(p, hardened=hardened), want) <= 1e-5
    p = problem(1, 2, 3, 256, 256, 16, window=32, pos=[100])
    stale = changed(p, k=np.where(np.arange(256)[:, None] == 100, 9, p.k))
    moved = np.abs(output(p, call(stale, hardened=hardened)) - output(p, call(p)))
    # queries 1 and 2 look at slot 100, which the active tokens have not reached
    first = np.abs(golden(p) - golden(p, attends=p.attends(True))).max()
    assert hardened or moved[..., 1:].max() > 1e-3
    assert first > 1e-3


def test_band_of_the_design_example():
    """A window of 8 in 16 slots at position 3, four queries."""
    rows = {0: [12, 13, 14, 15, 0, 1, 2], 1: [13, 14, 15, 0, 1, 2, 3]}
    rows |= {2: [14, 15, 0, 1, 2, 3, 4], 3: [15, 0, 1, 2, 3, 4, 5]}
    pos = 3 + np.arange(4)[None]
    start = (pos - 7) % 16
    config = TkgConfig(curr_sprior=128, full_sprior=128)
    mask = gen_mask_tkg(pos, config=config, n_heads=1, start_pos_ids=start).mask
    for s, expected in rows.items():
        inside = set(np.flatnonzero(mask[:, 0, 0, 0, s])) & set(range(16))
        assert inside == set(expected)


@pytest.mark.parametrize("lnc", [1, 2])
def test_rows_without_keys(lnc):
    p = problem(1, 2, 2, 512, 512, 16)
    mask = np.zeros((512, 1, 2, 2), bool)
    mask[:200, :, 1] = True
    how = {"given_mask": mask, "lnc": lnc}
    out = output(p, call(p, **how))
    assert np.isnan(out[:, 0]).all() and np.isfinite(out[:, 1]).all()
    hardened = output(p, call(p, **how, hardened=True))
    assert (hardened[:, 0] == 0).all()
    np.testing.assert_array_equal(hardened[:, 1], out[:, 1])
    p = changed(p, sink=np.ones((2, 1), np.float32))
    for mode in (False, True):
        out = output(p, call(p, **how, hardened=mode))
        assert (out[:, 0] == 0).all() and np.isfinite(out).all()


TILES = {"fa_tile_s_prior": 128, "tp_k_prior": True}


def test_leading_masked_tiles():
    def late(slots, sink=False):
        """Only the active token, in the last tile, is attended."""
        p = problem(1, 2, 1, slots, slots, 16, pos=[0], sink=sink)
        return p, golden(p)

    p, want = late(384)
    assert np.isnan(output(p, call(p, **TILES))).all()
    assert difference(p, call(p, **TILES, hardened=True), want) <= 1e-5
    p, want = late(256)
    for mode in (False, True):
        assert difference(p, call(p, **TILES, hardened=mode), want) <= 1e-5
    for slots in (256, 384, 640):
        p, want = late(slots, sink=True)
        for mode in (False, True):
            assert difference(p, call(p, **TILES, hardened=mode), want) <= 1e-5


@pytest.mark.parametrize("sink", [False, True])
def test_leading_masked_tiles_on_the_second_core(sink):
    """All cached keys belong to core 0; core 1 has three tiles, two of them empty."""
    p = problem(1, 2, 1, 768, 768, 16, pos=[100], sink=sink)
    assert np.isnan(output(p, call(p, **TILES, lnc=2))).all()
    result = call(p, **TILES, lnc=2, hardened=True)
    assert difference(p, result, golden(p)) <= 1e-5


@pytest.mark.parametrize("tiles", [2, 3])
def test_a_first_core_without_any_key(tiles):
    """With two tiles its only correction meets the other core's finite maximum."""
    p = problem(1, 2, 1, 256 * tiles, 256 * tiles, 16, pos=[0])
    out = output(p, call(p, **TILES, lnc=2))
    assert np.isnan(out).all() if tiles == 3 else np.isfinite(out).all()
    result = call(p, **TILES, lnc=2, hardened=True)
    assert difference(p, result, golden(p)) <= 1e-5


def test_leading_masked_tiles_at_full_size():
    p = problem(1, 1, 1, 49152, 49152, 4, pos=[1000])
    assert np.isnan(output(p, call(p, lnc=2))).all()
    assert difference(p, call(p, lnc=2, hardened=True), golden(p)) <= 1e-5


@pytest.mark.parametrize("lnc", [1, 2])
@pytest.mark.parametrize("tile", [8192, 256, 128])
def test_sinks_count_once(tile, lnc):
    p = problem(2, 3, 2, 512, 512, 16, pos=[300, 400])
    how = {"fa_tile_s_prior": tile, "lnc": lnc}
    plain = output(p, call(p, **how))
    none = changed(p, sink=np.full((3, 1), -np.inf, np.float32))
    np.testing.assert_allclose(output(p, call(none, **how)), plain, rtol=1e-5)
    high = changed(p, sink=np.full((3, 1), 80, np.float32))
    assert 0 < np.abs(output(p, call(high, **how))).max() < 1e-28
    own = changed(p, sink=np.array([[-1], [0], [3]], np.float32))
    assert difference(p, call(own, **how), golden(own)) <= 1e-5


def poisoned(p, **what):
    """Put a value into every slot that no query attends."""
    fields = {}
    for name, value in what.items():
        x = getattr(p, name).copy()
        for b in range(p.q.shape[0]):
            x[b, p.pos[b, 0] : p.slots] = value
        x[p.q.shape[0] :] = value
        fields[name] = x
    return changed(p, **fields)


@pytest.mark.parametrize("how", WAYS.values(), ids=WAYS)
def test_poison_in_masked_slots(how):
    p = problem(2, 2, 2, 512, 512, 64, pos=[300, 400])
    plain = output(p, call(p, **how))
    keys = output(p, call(poisoned(p, k=np.nan), **how))
    np.testing.assert_array_equal(keys, plain)
    values = output(p, call(poisoned(p, v=np.nan), **how))
    assert np.isnan(values).all()


def test_pages_that_do_not_exist():
    p = problem(2, 2, 1, 4096, 4096, 16, pos=[100, 200])
    args, more = arguments(p, block_len=32)
    table = more["active_blocks_table"]
    pages = args[3].shape[0]
    for bad in (pages, 0xFFFFFFFF):
        wrong = table.copy()
        wrong[1, 70] = bad
        with pytest.raises(flashlib.OutOfBoundsError) as caught:
            attention_tkg(*args, **(more | {"active_blocks_table": wrong}))
        for word in ("batch 1", "fold 0", "partition 70", str(bad)):
            assert word in str(caught.value)
    padded = table.astype(np.int64)
    padded[:, 20:] = 0
    result = attention_tkg(*args, **(more | {"active_blocks_table": padded}))
    assert difference(p, result, golden(p)) <= 1e-5


def test_order_of_a_generated_mask():
    """The wrapper strides over the whole cache; the strided kernel reads in order."""
    p = problem(1, 1, 1, 1024, 1024, 16, pos=[300])
    in_order = p.attends()
    assert difference(p, call(p, given_mask=in_order), golden(p)) <= 1e-5
    config = TkgConfig(curr_sprior=1024, full_sprior=1024)
    for lnc in (1, 2):
        made = gen_mask_tkg(p.pos, config=config, n_heads=1, layout="hbm", lnc=lnc)
        rows = made.mask[:, 0, 0, 0].astype(bool)
        valid = np.arange(1024) < 300
        assert (rows != valid).sum() == 372
    wrong = made.mask.copy()
    wrong[-1] = 1
    out = call(p, given_mask=wrong)
    assert difference(p, out, golden(p, attends=wrong != 0)) <= 1e-5
    assert difference(p, out, golden(p)) > 0.01
    # tile-major reading is right on one core, not on two that share the slots
    tiles = rows.reshape(8, 128)
    np.testing.assert_array_equal(tiles.T, SlotLayout(8, 8).slots() < 300)
    halves = [SlotLayout(4, 4).slots(first) < 300 for first in (0, 512)]
    assert (np.concatenate(halves, 1) != tiles.T).sum() == 296


def test_rotation_at_position_zero_changes_nothing():
    p = problem(1, 1, 1, 128, 128, 64, pos=[0])
    result = call(p, rope=frequencies(64))
    np.testing.assert_allclose(result.k_out[0, 0, :, 0], p.k_active[0, 0], atol=1e-6)


def test_the_sine_alone_runs_away():
    m = Machine()
    nine = m.sbuf.put(np.full((1, 1), 9.0, np.float32))
    out = m.isa.activation(m.sbuf.alloc((1, 1)), "sin", nine)
    assert out.numpy()[0, 0] == pytest.approx(27.65, abs=0.01)
