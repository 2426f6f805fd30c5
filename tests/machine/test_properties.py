"""Random programs: legal ones equal NumPy, illegal ones raise and change nothing.

A program is a list of steps drawn by hypothesis over four tensors of one shape. A
shadow of plain NumPy arrays takes the same steps.
"""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flashlib
from flashlib.machine import Machine

ROWS, WIDTH = 64, 12
BINARY = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
}
DTYPES = (np.float32, ml_dtypes.bfloat16, np.float16)

tensor = st.integers(0, 3)
constant = st.floats(-2, 2, width=16)
cut = st.tuples(st.integers(0, WIDTH - 1), st.integers(1, WIDTH)).map(
    lambda t: slice(t[0], min(t[0] + t[1], WIDTH))
)
rows = st.sampled_from([slice(0, 64), slice(0, 32), slice(32, 64)])
window = st.tuples(rows, cut)
legal_step = st.one_of(
    st.tuples(
        st.just("tensor"), st.sampled_from(sorted(BINARY)), tensor, tensor, tensor
    ),
    st.tuples(
        st.just("scalar"), st.sampled_from(sorted(BINARY)), tensor, tensor, constant
    ),
    st.tuples(st.just("column"), st.sampled_from(sorted(BINARY)), tensor, tensor),
    st.tuples(st.just("fill"), tensor, window, constant),
    st.tuples(st.just("copy"), tensor, tensor, cut),
    st.tuples(st.just("select"), tensor, tensor, tensor),
    st.tuples(st.just("reduce"), st.sampled_from(["add", "maximum"]), tensor, tensor),
    st.tuples(st.just("product"), tensor, tensor, tensor),
    st.tuples(st.just("flip"), tensor, tensor),
    st.tuples(st.just("trip"), tensor, tensor),
)


class Twins:
    """Four tensors on the machine and their shadows in NumPy."""

    def __init__(self, seed, dtypes):
        self.m = Machine()
        rng = np.random.default_rng(seed)
        self.shadow = [
            rng.integers(-4, 5, (ROWS, WIDTH)).astype(np.float32).astype(d)
            for d in dtypes
        ]
        self.tiles = [self.m.sbuf.put(a) for a in self.shadow]
        self.column = rng.integers(-2, 3, (ROWS, 1)).astype(np.float32)
        self.column_tile = self.m.sbuf.put(self.column)

    def f32(self, i):
        return self.shadow[i].astype(np.float32)

    def store(self, i, values, where=...):
        self.shadow[i][where] = values.astype(self.shadow[i].dtype)

    def check(self):
        for tile, array in zip(self.tiles, self.shadow, strict=True):
            np.testing.assert_array_equal(
                tile.numpy().astype(np.float64), array.astype(np.float64)
            )

    # each pair of lines: the machine, then NumPy

    def tensor(self, op, d, a, b):
        self.m.isa.tensor_tensor(self.tiles[d], self.tiles[a], self.tiles[b], op)
        self.store(d, BINARY[op](self.f32(a), self.f32(b)))

    def scalar(self, op, d, a, value):
        self.m.isa.tensor_scalar(self.tiles[d], self.tiles[a], op, value)
        self.store(d, BINARY[op](self.f32(a), np.float32(value)))

    def fill(self, d, where, value):
        self.m.isa.memset(self.tiles[d][where], value)
        self.store(d, np.full((), value, np.float32), where)

    def column_(self, op, d, a):
        self.m.isa.tensor_scalar(
            self.tiles[d], self.tiles[a], op, self.column_tile, reverse0=True
        )
        self.store(d, BINARY[op](self.column, self.f32(a)))

    def copy(self, d, a, part):
        self.m.isa.tensor_copy(self.tiles[d][32:64, part], self.tiles[a][0:32, part])
        self.store(d, self.f32(a)[0:32, part], (slice(32, 64), part))

    def select(self, d, a, p):
        flags = (np.abs(self.f32(p)) % 3 >= 1).astype(np.uint8)
        source = self.f32(a).astype(self.shadow[d].dtype)
        with self.m.sbuf.scope():
            self.m.isa.tensor_copy_predicated(
                self.tiles[d], self.m.sbuf.put(source), self.m.sbuf.put(flags)
            )
        self.shadow[d] = np.where(flags != 0, source, self.shadow[d])

    def reduce(self, op, d, a):
        data = self.tiles[a].reshape(ROWS, 3, 4).permute((0, 2, 1))
        self.m.isa.tensor_reduce(self.tiles[d][:, :4], op, data, axis=2)
        folded = self.f32(a).reshape(ROWS, 3, 4)
        folded = folded.sum(1) if op == "add" else folded.max(1)
        self.store(d, folded, (slice(None), slice(0, 4)))

    def product(self, d, a, b):
        with self.m.psum.scope(), self.m.sbuf.scope():
            left = self.m.sbuf.put(np.sign(self.f32(a)))
            right = self.m.sbuf.put(np.sign(self.f32(b)))
            out = self.m.isa.nc_matmul(self.m.psum.alloc((WIDTH, WIDTH)), left, right)
            self.m.isa.tensor_copy(self.tiles[d][:WIDTH], out)
        with np.errstate(all="ignore"):
            exact = np.sign(self.f32(a)).T @ np.sign(self.f32(b))
        self.store(d, exact, slice(0, WIDTH))

    def flip(self, d, a):
        with self.m.psum.scope():
            out = self.m.psum.alloc((WIDTH, ROWS), self.tiles[a].dtype)
            self.m.isa.nc_transpose(out, self.tiles[a])
            self.m.isa.tensor_copy(self.tiles[d][:WIDTH], out[:, :WIDTH])
        self.store(d, self.f32(a)[:WIDTH].T, slice(0, WIDTH))

    def trip(self, d, a):
        hbm = self.m.hbm.alloc((WIDTH, ROWS))
        self.m.isa.dma_copy(hbm.permute((1, 0)), self.tiles[a])
        self.m.isa.dma_copy(self.tiles[d], hbm.permute((1, 0)))
        hbm.free()
        self.store(d, self.f32(a))

    def take(self, step):
        name, *operands = step
        getattr(self, {"column": "column_"}.get(name, name))(*operands)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2**16),
    st.tuples(*[st.sampled_from(DTYPES)] * 4),
    st.lists(legal_step, min_size=1, max_size=12),
)
def test_random_legal_programs_equal_numpy(seed, dtypes, steps):
    twins = Twins(seed, dtypes)
    with np.errstate(all="ignore"):
        for step in steps:
            twins.take(step)
            twins.check()
    assert len(twins.m.trace) >= len(steps)


def _bad_window(m, t, n):
    m.isa.tensor_copy(t[0], t[1][:, : WIDTH + n])


ILLEGAL = {
    "window beyond the axis": _bad_window,
    "partitions from 1": lambda m, t, n: m.isa.tensor_copy(
        t[0][: 32 - n % 16], t[1][n % 15 + 1 : n % 15 + 33 - n % 16]
    ),
    "heights differ": lambda m, t, n: m.isa.tensor_tensor(t[0], t[1], t[2][:32], "add"),
    "widths differ": lambda m, t, n: m.isa.tensor_tensor(
        t[0], t[1], t[2][:, : n % (WIDTH - 1) + 1], "add"
    ),
    "operator unknown": lambda m, t, n: m.isa.tensor_scalar(t[0], t[1], f"op{n}", 1.0),
    "reduce partitions": lambda m, t, n: m.isa.tensor_reduce(t[0], "add", t[1], axis=0),
    "product of wrong height": lambda m, t, n: m.isa.nc_matmul(
        m.psum.alloc((WIDTH, WIDTH)), t[0], t[1][:32]
    ),
    "product into sbuf": lambda m, t, n: m.isa.nc_matmul(t[0][:WIDTH], t[1], t[2]),
    "read fresh memory": lambda m, t, n: m.isa.tensor_copy(
        t[0], m.sbuf.alloc((ROWS, WIDTH))
    ),
    "dma of another size": lambda m, t, n: m.isa.dma_copy(
        t[0], m.hbm.put(np.zeros((ROWS, WIDTH + n), np.float32))
    ),
    "predicate of floats": lambda m, t, n: m.isa.tensor_copy_predicated(
        t[0], t[1], m.sbuf.put(np.zeros((ROWS, WIDTH), np.float32))
    ),
    "gather out of bounds": lambda m, t, n: m.isa.dma_copy(
        t[0],
        m.hbm.put(np.zeros((4, WIDTH), np.float32)).ap(
            [[WIDTH, ROWS], [1, WIDTH]],
            vector_offset=m.sbuf.put(
                np.where(np.arange(ROWS) == n % ROWS, 3 + n, 0)
                .astype(np.uint32)
                .reshape(-1, 1)
            ),
        ),
    ),
    "wrong engine": lambda m, t, n: m.isa.tensor_copy(t[0], t[1], engine="tensor"),
    "not a tensor": lambda m, t, n: m.isa.tensor_copy(t[0], np.zeros((ROWS, WIDTH))),
    "pattern too short": lambda m, t, n: m.isa.iota(t[0], [[1, n % (WIDTH - 1) + 1]]),
}


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2**16),
    st.tuples(*[st.sampled_from(DTYPES)] * 4),
    st.lists(legal_step, max_size=4),
    st.sampled_from(sorted(ILLEGAL)),
    st.integers(1, 40),
)
def test_random_illegal_programs_raise_and_change_nothing(seed, dtypes, steps, name, n):
    twins = Twins(seed, dtypes)
    with np.errstate(all="ignore"):
        for step in steps:
            twins.take(step)
    length, registers = len(twins.m.trace), twins.m.state.sum_registers.copy()
    with pytest.raises(flashlib.FlashError) as caught:
        ILLEGAL[name](twins.m, twins.tiles, n)
    assert isinstance(caught.value, flashlib.MachineError | flashlib.DTypeError), (
        "an error of the machine"
    )
    twins.check()
    assert len(twins.m.trace) == length
    np.testing.assert_array_equal(twins.m.state.sum_registers, registers)
