"""Cost formulas where a condition of theirs only just holds, or only just fails."""

import ml_dtypes
import numpy as np
import pytest

from flashlib.machine import Machine, timeline

BF16, F16 = ml_dtypes.bfloat16, np.float16


def _cycles(program):
    """Cycles of the last instruction of a program."""
    m = Machine()
    program(m)
    return timeline(m.trace).events[-1].cycles


def _tile(m, n, dtype=np.float32, memory="sbuf", rows=128):
    tile = getattr(m, memory).alloc((rows, n), dtype)
    return m.isa.memset(tile, 1.0)


@pytest.mark.parametrize(
    "p, f, cycles", [(32, 8, 32), (8, 32, 32), (8, 100, 64), (96, 128, 96), (1, 1, 1)]
)
def test_a_transpose_on_the_array(p, f, cycles):
    """max(P, min(64, F)): the 64 is what F is cut to, and no lower bound."""
    assert cycles == max(p, min(64, f))

    def program(m):
        x = _tile(m, f, rows=p)
        m.isa.nc_transpose(m.psum.alloc((f, p)), x, engine="tensor")

    assert _cycles(program) == cycles


FUSED = {
    "even": (BF16, BF16, "subtract", "multiply", 300, 300),
    "odd": (BF16, BF16, "subtract", "multiply", 301, 602),
    "other operators": (BF16, BF16, "add", "multiply", 300, 600),
    "operators in the other order": (BF16, BF16, "multiply", "subtract", 300, 600),
    "float16": (F16, F16, "subtract", "multiply", 300, 600),
    "data wide": (np.float32, BF16, "subtract", "multiply", 300, 600),
    "operand wide": (BF16, np.float32, "subtract", "multiply", 300, 600),
}


@pytest.mark.parametrize("data, other, op0, op1, n, cycles", FUSED.values(), ids=FUSED)
def test_two_operators_fused(data, other, op0, op1, n, cycles):
    def program(m):
        x, y, d = _tile(m, n, data), _tile(m, n, other), _tile(m, n, BF16)
        m.isa.scalar_tensor_tensor(d, x, op0, 1.0, op1, y)

    assert _cycles(program) == cycles


@pytest.mark.parametrize("wide", range(4))
def test_two_tiles_are_quick_when_all_three_are_bfloat16(wide):
    def program(m):
        kinds = [np.float32 if i == wide else BF16 for i in range(3)]
        d, x, y = (_tile(m, 200, kind) for kind in kinds)
        m.isa.tensor_tensor(d, x, y, "add")

    assert _cycles(program) == (200 if wide == 3 else 400)


@pytest.mark.parametrize("strided", range(4))
def test_two_tiles_are_quick_when_all_three_lie_back_to_back(strided):
    def program(m):
        tiles = [_tile(m, 400, BF16) for _ in range(3)]
        d, x, y = (
            t[:, ::2] if i == strided else t[:, :200] for i, t in enumerate(tiles)
        )
        m.isa.tensor_tensor(d, x, y, "add")

    assert _cycles(program) == (200 if strided == 3 else 400)


@pytest.mark.parametrize(
    "memories, cycles",
    [
        (("psum", "sbuf", "sbuf"), 400),
        (("sbuf", "psum", "sbuf"), 200),
        (("sbuf", "sbuf", "psum"), 200),
        (("psum", "psum", "sbuf"), 200),
    ],
)
def test_two_tiles_are_quick_when_one_input_is_in_psum(memories, cycles):
    def program(m):
        d, x, y = (_tile(m, 200, memory=memory) for memory in memories)
        m.isa.tensor_tensor(d, x, y, "add")

    assert _cycles(program) == cycles


@pytest.mark.parametrize(
    "dtype, value, n, cycles",
    [
        (F16, 0.0, 200, 100),
        (F16, 0.0, 10, 5),
        (F16, 1.0, 200, 200),
        (F16, 1.0, 10, 64),
        (BF16, 0.0, 200, 100),
        (BF16, 1.0, 200, 200),
        (np.float32, 0.0, 200, 200),
        (np.uint16, 0, 200, 200),
    ],
)
def test_zeros_of_two_floating_bytes_fill_twice_as_fast(dtype, value, n, cycles):
    assert (
        _cycles(lambda m: m.isa.memset(m.sbuf.alloc((128, n), dtype), value)) == cycles
    )


@pytest.mark.parametrize("n, row", [(200, 200), (10, 64)])
def test_reading_the_sums_out_takes_64_cycles_more(n, row):
    def program(m, **reduction):
        x, d = _tile(m, n), m.sbuf.alloc((128, n))
        if reduction.pop("read_out", False):
            reduction["reduce_res"] = m.sbuf.alloc((128, 1))
        m.isa.activation(d, "exp", x, **reduction)

    summed = {"reduce_op": "add", "reduce_cmd": "reset_reduce"}
    assert _cycles(program) == row
    assert _cycles(lambda m: program(m, **summed)) == row
    assert _cycles(lambda m: program(m, read_out=True, **summed)) == row + 64
    reset = {"read_out": True, "reduce_cmd": "reset"}
    assert _cycles(lambda m: program(m, **reset)) == row + 64


HALVED = {
    "add": (BF16, BF16, "add", 100),
    "maximum": (BF16, BF16, "maximum", 100),
    "minimum": (BF16, BF16, "minimum", 200),
    "float16": (F16, F16, "add", 200),
    "data wide": (np.float32, BF16, "add", 200),
    "result wide": (BF16, np.float32, "add", 200),
}


@pytest.mark.parametrize("data, result, op, cycles", HALVED.values(), ids=HALVED)
def test_reductions_of_bfloat16(data, result, op, cycles):
    def program(m):
        m.isa.tensor_reduce(_tile(m, 1, result), op, _tile(m, 200, data), axis=1)

    assert _cycles(program) == cycles
