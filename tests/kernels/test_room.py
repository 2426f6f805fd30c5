"""Room for kernels: rounded up, aligned, lent."""

import numpy as np
import pytest
from kernels.compiled import compiled

from flashlib.kernels import room
from flashlib.kernels.room import Room, aligned, round_up


@compiled
def rounded(n, step):
    return round_up(n, step)


@compiled
def array_of(size, like):
    return aligned(size, like)


def test_numbers_are_rounded_up_to_whole_steps():
    found = [rounded(n, 8) for n in (0, 1, 7, 8, 9, 16, 17)]
    assert found == [0, 8, 8, 8, 16, 16, 24]
    assert [rounded(n, 1) for n in (0, 5)] == [0, 5]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_array_starts_on_a_line_and_has_its_whole_size(dtype):
    sizes = [0, 1, 15, 16, 17, 1000, *range(1, 40)]
    arrays = [array_of(size, np.empty(1, dtype)) for size in sizes]
    assert [x.size for x in arrays] == sizes
    for x in arrays:
        assert x.dtype == dtype and x.ctypes.data % 64 == 0


def test_room_is_lent_again_until_it_is_too_small():
    kept = Room()
    first = kept.lend(100, np.dtype(np.float32))
    assert first.size == 100 and first.dtype == np.float32
    smaller = kept.lend(40, np.dtype(np.float64))
    assert smaller.size == 40 and smaller.dtype == np.float64
    assert smaller.ctypes.data == first.ctypes.data
    assert kept.lend(50, np.dtype(np.float64)).ctypes.data == first.ctypes.data
    larger = kept.lend(51, np.dtype(np.float64))
    assert larger.size == 51 and larger.ctypes.data != first.ctypes.data
    assert kept.lend(1, np.dtype(np.float32)).ctypes.data == larger.ctypes.data


def test_large_room_is_not_kept(monkeypatch):
    monkeypatch.setattr(room, "KEPT_BYTES", 400)
    kept = Room()
    small = kept.lend(100, np.dtype(np.float32))
    assert kept.lend(101, np.dtype(np.float32)).size == 101
    assert kept.lend(100, np.dtype(np.float32)).ctypes.data == small.ctypes.data
