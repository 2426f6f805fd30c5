"""The memories of the device lie in that of this computer, which may have less."""

import numpy as np
import pytest

from flashlib import CapacityError

MAKERS = {"empty": "alloc", "zeros": "alloc", "array": "put"}


def _used(m):
    return m.hbm.used, m.sbuf.used, m.sbuf.peak, m.psum.free_banks


@pytest.mark.parametrize("memory", ["hbm", "sbuf", "psum"])
@pytest.mark.parametrize("maker", MAKERS)
def test_a_computer_that_is_full_changes_nothing(bench, monkeypatch, memory, maker):
    bench.hbm(4, 4), bench.sbuf(4, 4), bench.psum(4, 4)
    before = _used(bench.m)
    place, values = getattr(bench.m, memory), np.ones((4, 8), np.uint8)

    def full(*_, **__):
        raise MemoryError

    with place.scope():
        with (
            bench.refuses(CapacityError, "32 bytes of " + memory, "this computer"),
            monkeypatch.context() as patch,
        ):
            patch.setattr(np, maker, full)
            if MAKERS[maker] == "put":
                place.put(values)
            else:
                place.alloc((4, 8), np.uint8)
    assert _used(bench.m) == before
    again = place.put(values)
    np.testing.assert_array_equal(again.numpy(), values)
