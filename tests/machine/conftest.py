"""A bench: a machine whose tensors are remembered, so that a test can prove that a
refused instruction changed nothing."""

import re
from contextlib import contextmanager

import numpy as np
import pytest

from flashlib.machine import NC_V2, NC_V3, NC_V4, Machine

SPECS = {2: NC_V2, 3: NC_V3, 4: NC_V4}


class Bench:
    """Tensors with reproducible contents in the three memories."""

    def __init__(self, generation=3):
        self.m = Machine(SPECS[generation])
        self.isa = self.m.isa
        self.tiles = []
        self.rng = np.random.default_rng(7)

    def values(self, shape, dtype):
        if np.dtype(dtype).kind in "iu":
            return self.rng.integers(0, 5, shape).astype(dtype)
        return self.rng.standard_normal(shape).astype(np.float32).astype(dtype)

    def _keep(self, tile):
        self.tiles.append(tile)
        return tile

    def sbuf(self, *shape, dtype=np.float32):
        return self._keep(self.m.sbuf.put(self.values(shape, dtype)))

    def hbm(self, *shape, dtype=np.float32):
        return self._keep(self.m.hbm.put(self.values(shape, dtype)))

    def psum(self, *shape, dtype=np.float32):
        tile = self.m.psum.alloc(shape, dtype)
        with self.m.sbuf.scope():
            source = self.m.sbuf.put(self.values(shape, dtype))
            self.isa.tensor_copy(tile, source)
        return self._keep(tile)

    def fresh(self, memory, *shape, dtype=np.float32):
        return self._keep(getattr(self.m, memory).alloc(shape, dtype))

    def snapshot(self):
        contents = [t.numpy().tobytes() for t in self.tiles]
        states = [t.state is None or t.state.tobytes() for t in self.tiles]
        sums = (self.m.state.sum_registers.tobytes(), self.m.state.sums_known.tobytes())
        return contents, states, sums, len(self.m.trace)

    @contextmanager
    def refuses(self, error, *words):
        """The block raises ``error``, names every word, and changes nothing."""
        before = self.snapshot()
        with pytest.raises(error) as caught:
            yield
        message = str(caught.value)
        assert "\n" not in message
        assert message.count("; ") >= 2, "value; expected; rule; remedy"
        for word in words:
            assert re.search(word, message), f"{word!r} not in {message!r}"
        assert self.snapshot() == before


@pytest.fixture
def bench():
    return Bench()


@pytest.fixture
def bench_of():
    return Bench
