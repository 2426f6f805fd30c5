"""Memories and windows: stack, banks, scopes, written-ness, write-through views."""

import gc
import weakref

import ml_dtypes
import numpy as np
import pytest

import flashlib
from flashlib.machine import NC_V2, NC_V3, Machine

BF16 = ml_dtypes.bfloat16


def test_put_copies_and_leaves_no_trace():
    m = Machine()
    array = np.arange(8, dtype=">f4").reshape(2, 4)[:, ::-1]
    for memory in (m.hbm, m.sbuf):
        tile = memory.put(array)
        np.testing.assert_array_equal(tile.numpy(), array)
        assert tile.dtype == np.float32
    array[...] = 0
    assert tile.numpy().any()
    tile.numpy()[...] = 77
    assert not (tile.numpy() == 77).any()
    assert len(m.trace) == 0


@pytest.mark.parametrize(
    "dtype",
    ["float32", "bfloat16", "float16", "float8_e4m3", "int32", "uint32", "uint8"],
)
def test_fresh_memory_is_poisoned_and_unreadable(dtype):
    m = Machine()
    for memory in (m.hbm, m.sbuf, m.psum):
        tile = memory.alloc((4, 3), dtype)
        values = tile.numpy()
        assert values.dtype.name == dtype
        if dtype.startswith(("int", "uint")):
            assert (values == np.iinfo(dtype).max).all()
        else:
            assert np.isnan(values.astype(np.float32)).all()
        assert not tile.is_written()


def test_written_is_tracked_per_element():
    m = Machine()
    tile, out = m.sbuf.alloc((4, 4)), m.sbuf.alloc((4, 2))
    m.isa.memset(tile[:, 1:3], 1.0)
    m.isa.tensor_copy(out, tile[:, 1:3])
    with pytest.raises(flashlib.UninitializedError, match="4 unwritten elements of 8"):
        m.isa.tensor_copy(out, tile[:, :2])
    np.testing.assert_array_equal(np.isnan(tile.numpy()[0]), [True, False, False, True])
    m.isa.memset(tile[:, ::3], 2.0)
    assert tile.is_written()
    np.testing.assert_array_equal(tile.numpy()[0], [2, 1, 1, 2])


def test_windows_write_through_and_keep_their_start():
    m = Machine()
    tile = m.sbuf.put(np.zeros((128, 2, 6), np.float32))
    window = tile[64:96, 1, ::2]
    assert (window.start_partition, window.partitions, window.shape) == (
        64,
        32,
        (32, 3),
    )
    m.isa.memset(window, 5.0)
    expected = np.zeros((128, 2, 6))
    expected[64:96, 1, ::2] = 5
    np.testing.assert_array_equal(tile.numpy(), expected)
    assert tile[70].shape == (1, 2, 6)
    assert tile[-32:].start_partition == 96
    assert tile[..., -1].shape == (128, 2)
    assert tile[:, None, 0].shape == (128, 1, 6)
    assert tile[:, 0, ::-1].numpy()[64, 0] == tile.numpy()[64, 0, -1]


def test_views_agree_with_numpy():
    m = Machine()
    array = np.arange(4 * 24, dtype=np.float32).reshape(4, 2, 3, 4)
    for tile in (m.sbuf.put(array), m.hbm.put(array)):
        views = {
            "permute": (tile.permute((0, 3, 1, 2)), array.transpose(0, 3, 1, 2)),
            "reshape": (tile.reshape(4, 6, 4), array.reshape(4, 6, 4)),
            "guess": (tile.reshape((4, -1)), array.reshape(4, -1)),
            "window": (tile[1:3, 1, ::2], array[1:3, 1, ::2]),
        }
        for name, (view, expected) in views.items():
            np.testing.assert_array_equal(view.numpy(), expected, err_msg=name)
    column = tile[:, :, :, :1].broadcast_to((4, 2, 3, 5))
    np.testing.assert_array_equal(
        column.numpy(), np.broadcast_to(array[..., :1], (4, 2, 3, 5))
    )


def test_explicit_patterns():
    m = Machine()
    array = np.arange(64 * 8, dtype=np.float32).reshape(64, 8)
    chip, linear = m.sbuf.put(array), m.hbm.put(array)
    rows = chip.ap([[8, 32], [2, 4]], offset=32 * 8 + 1)
    assert rows.start_partition == 32
    np.testing.assert_array_equal(rows.numpy(), array[32:, 1::2])
    np.testing.assert_array_equal(
        linear.ap([[1, 8], [8, 64]]).numpy(), array.T, "any order in hbm"
    )
    backwards = linear.ap([[-1, 8]], offset=7)
    np.testing.assert_array_equal(backwards.numpy(), array[0, ::-1])
    windows = linear.ap([[1, 6], [1, 3]])
    np.testing.assert_array_equal(windows.numpy()[5], array.reshape(-1)[5:8])
    out = m.sbuf.alloc((6, 3))
    m.isa.dma_copy(out, windows)
    with pytest.raises(flashlib.FreeSizeError, match="has elements that repeat"):
        m.isa.dma_copy(windows, out)


def test_pattern_ignores_the_window_it_is_called_on():
    m = Machine()
    tile = m.sbuf.put(np.arange(32, dtype=np.float32).reshape(4, 8))
    np.testing.assert_array_equal(
        tile[1:3, 4:].ap([[8, 4], [1, 8]]).numpy(), tile.numpy()
    )


@pytest.mark.parametrize("spec, kib", [(NC_V2, 192), (NC_V3, 224)])
def test_sbuf_is_a_stack(spec, kib):
    m = Machine(spec)
    low = m.sbuf.alloc((128, kib * 128), np.uint8)
    high = m.sbuf.alloc((1, kib * 1024 - kib * 128), np.uint8)
    assert m.sbuf.used == spec.sbuf_bytes_per_partition
    with pytest.raises(flashlib.CapacityError):
        m.sbuf.alloc((1, 1), np.uint8)
    low.free()
    with pytest.raises(flashlib.CapacityError, match=f"{kib * 128} freed but below"):
        m.sbuf.alloc((1, 1), np.uint8)
    high.free()
    assert m.sbuf.used == 0
    m.sbuf.alloc((128, kib * 1024), np.uint8)


def test_scopes_free_what_they_opened():
    m = Machine()
    outer = m.sbuf.alloc((128, 4))
    with m.sbuf.scope(), m.psum.scope():
        inner = m.sbuf.alloc((128, 100))
        m.sbuf.alloc((128, 8)).free()
        with m.sbuf.scope():
            m.sbuf.alloc((128, 50))
        assert m.sbuf.used == 4 * 104
        m.psum.alloc((128, 1024))
        assert m.psum.free_banks == (2, 3, 4, 5, 6, 7)
    assert m.sbuf.used == 16
    assert m.psum.free_banks == tuple(range(8))
    m.isa.memset(outer, 0.0)
    with pytest.raises(flashlib.PlacementError, match="freed"):
        m.isa.memset(inner, 0.0)


def test_scope_frees_when_the_program_fails():
    m = Machine()
    with pytest.raises(flashlib.CapacityError), m.sbuf.scope():
        m.sbuf.alloc((128, 100))
        m.sbuf.alloc((128, 2**20))
    assert m.sbuf.used == 0


def test_psum_hands_out_whole_banks():
    m = Machine()
    small, wide = m.psum.alloc((1, 1)), m.psum.alloc((128, 513))
    assert (small.bank, wide.bank) == (0, 1)
    assert m.psum.free_banks == (3, 4, 5, 6, 7)
    small.free()
    assert m.psum.alloc((128, 512)).bank == 0
    with pytest.raises(flashlib.BankError, match="expected 0 to 6"):
        m.psum.alloc((128, 513), bank=7)


def test_hbm_room_comes_back():
    m = Machine()
    tile = m.hbm.alloc((1024,))
    assert m.hbm.used == 4096
    tile.free()
    assert m.hbm.used == 0


def test_memory_is_given_back_at_once():
    """No reference cycle keeps a machine or its tensors waiting for a collection."""
    gc.disable()
    try:
        m = Machine()
        tile = m.hbm.put(np.zeros((4, 4), np.float32))
        chip = m.isa.dma_copy(m.sbuf.alloc((4, 4)), tile.reshape(2, 8))
        gone = [weakref.ref(x.array) for x in (tile, chip)] + [weakref.ref(m.state)]
        del m, tile, chip
        assert [r() for r in gone] == [None] * 3
    finally:
        gc.enable()


def test_repr_and_attributes():
    m = Machine()
    tile = m.sbuf.put(np.zeros((128, 4), BF16))
    assert repr(tile[32:64]) == "<sbuf [32:64, 4] bfloat16>"
    assert repr(m.hbm.put(np.zeros(3, np.float32))) == "<hbm [3] float32>"
    assert (tile.memory, tile.nbytes, tile.free_size) == ("sbuf", 1024, 4)
    assert "core 0" in repr(m)


def test_hbm_room_is_what_the_others_leave():
    m = Machine()
    m.hbm.alloc((1024,), np.uint8)
    with pytest.raises(flashlib.CapacityError, match="expected at most 103079214080"):
        m.hbm.alloc((NC_V3.hbm_bytes - 1023,), np.uint8)
    assert m.hbm.used == 1024


def test_the_peak_stays_when_the_room_comes_back():
    m = Machine()
    with m.sbuf.scope():
        m.sbuf.alloc((128, 100))
    m.sbuf.alloc((128, 10))
    assert (m.sbuf.used, m.sbuf.peak) == (40, 400)
    m.sbuf.alloc((128, 100))
    assert m.sbuf.peak == 440
