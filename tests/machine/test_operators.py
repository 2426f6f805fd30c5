"""Every operator, reduction and function against Python's own arithmetic."""

import math
import operator
from functools import reduce

import numpy as np
import pytest

from flashlib.machine.operators import FUNCTIONS, OPERATORS, REDUCTIONS, apply

#: Every pair of these occurs: both signs, equal and unequal ones, and zeros.
NUMBERS = (-2.5, -1.0, 0.0, 0.5, 1.0, 3.0)
BITS = (0, 1, 2, 3, 6, 7)

PLAIN = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "maximum": max,
    "minimum": min,
    "power": operator.pow,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "equal": operator.eq,
    "not_equal": operator.ne,
    "logical_and": lambda a, b: bool(a) and bool(b),
    "logical_or": lambda a, b: bool(a) or bool(b),
}
OF_BITS = {
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
    "left_shift": operator.lshift,
    "right_shift": operator.rshift,
}
DEFINED = {
    "divide": lambda a, b: b != 0,
    "power": lambda a, b: a > 0,
}


def test_no_operator_is_left_out():
    assert {*PLAIN, *OF_BITS} == set(OPERATORS)
    assert set(REDUCED) | {"bitwise_and", "bitwise_or", "bitwise_xor"} == set(
        REDUCTIONS
    )
    assert set(OF_ONE) == set(FUNCTIONS)


@pytest.mark.parametrize("op", PLAIN)
def test_operators_of_numbers(bench, op):
    defined = DEFINED.get(op, lambda a, b: True)
    pairs = [(a, b) for a in NUMBERS for b in NUMBERS if defined(a, b)]
    left, right = np.array(pairs, np.float32).T[:, None]
    want = np.array([[PLAIN[op](a, b) for a, b in pairs]], np.float32)
    np.testing.assert_allclose(apply(op, left, right, False), want, rtol=1e-6)
    d, x, y = bench.m.sbuf.alloc(want.shape), *map(bench.m.sbuf.put, (left, right))
    engine = "gpsimd" if op == "power" else "vector"
    bench.isa.tensor_tensor(d, x, y, op, engine=engine)
    np.testing.assert_allclose(d.numpy(), want, rtol=1e-6)
    assert d.numpy().dtype == np.float32


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.uint16, np.uint8])
@pytest.mark.parametrize("op", OF_BITS)
def test_operators_of_bits(bench, op, dtype):
    pairs = [(a, b) for a in BITS for b in BITS]
    left, right = np.array(pairs, dtype).T[:, None].copy()
    ends = np.iinfo(dtype)
    want = np.array([[OF_BITS[op](a, b) & ends.max for a, b in pairs]], dtype)
    d, x, y = (bench.m.sbuf.put(a) for a in (np.zeros_like(left), left, right))
    bench.isa.tensor_tensor(d, x, y, op)
    np.testing.assert_array_equal(d.numpy(), want)
    for b in (1, np.int64(3), np.uint8(7), dtype(2)):
        bench.isa.tensor_scalar(d, x, op, b)
        want = [OF_BITS[op](a, int(b)) & ends.max for a, _ in pairs]
        np.testing.assert_array_equal(d.numpy()[0], want)
        bench.isa.tensor_scalar(d, x, op, b, reverse0=True)
        want = [OF_BITS[op](int(b), a) & ends.max for a, _ in pairs]
        np.testing.assert_array_equal(d.numpy()[0], want)


def test_bit_constants_reach_both_ends_of_their_type(bench):
    for dtype in (np.int32, np.uint32, np.uint16, np.uint8):
        ends = np.iinfo(dtype)
        x = bench.m.sbuf.put(np.array([[0, 1, ends.max, ends.min]], dtype))
        d = bench.m.sbuf.alloc((1, 4), dtype)
        for end in (ends.min, ends.max):
            bench.isa.tensor_scalar(d, x, "bitwise_xor", end)
            np.testing.assert_array_equal(d.numpy(), x.numpy() ^ dtype(end))


def test_the_second_bit_operator_may_be_reversed(bench):
    x = bench.m.sbuf.put(np.array([[0, 1, 2, 3]], np.uint32))
    d = bench.m.sbuf.alloc((1, 4), np.uint32)
    bench.isa.tensor_scalar(d, x, "bitwise_and", 1, False, "left_shift", 5, True)
    assert d.numpy().tolist() == [[5, 10, 5, 10]]


REDUCED = {
    "add": lambda row: reduce(operator.add, row),
    "subtract": lambda row: reduce(operator.sub, row),
    "multiply": lambda row: reduce(operator.mul, row),
    "maximum": max,
    "minimum": min,
    "logical_and": all,
    "logical_or": any,
}
ROWS = ((1.0, 2.0, -3.0), (0.0, 2.0, 5.0), (0.0, 0.0, 0.0), (-1.0, 0.5, 0.0))


@pytest.mark.parametrize("op", REDUCED)
def test_reductions_of_numbers(bench, op):
    x = bench.m.sbuf.put(np.array(ROWS, np.float32))
    d = bench.isa.tensor_reduce(bench.m.sbuf.alloc((4, 1)), op, x, axis=1)
    assert d.numpy()[:, 0].tolist() == [float(REDUCED[op](row)) for row in ROWS]


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.uint16, np.uint8])
@pytest.mark.parametrize("op", ["bitwise_and", "bitwise_or", "bitwise_xor"])
def test_reductions_of_bits(bench, op, dtype):
    rows = ((3, 6, 7), (1, 1, 0), (5, 5, 5))
    x = bench.m.sbuf.put(np.array(rows, dtype))
    d = bench.isa.tensor_reduce(bench.m.sbuf.alloc((3, 1), dtype), op, x, axis=1)
    assert d.numpy()[:, 0].tolist() == [reduce(OF_BITS[op], row) for row in rows]


OF_ONE = {
    "copy": lambda x: x,
    "exp": math.exp,
    "log": math.log,
    "sin": math.sin,
    "sqrt": math.sqrt,
    "rsqrt": lambda x: 1 / math.sqrt(x),
    "reciprocal": lambda x: 1 / x,
    "square": lambda x: x * x,
    "abs": abs,
    "sign": lambda x: math.copysign(1, x) if x else 0.0,
    "relu": lambda x: max(x, 0.0),
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)),
    "silu": lambda x: x / (1 + math.exp(-x)),
    "tanh": math.tanh,
}


@pytest.mark.parametrize("function", OF_ONE)
def test_functions_of_one_number(bench, function):
    numbers = (-2.5, -1.0, -0.25, 0.0, 0.5, 1.0, 3.0)
    if function in ("log", "sqrt", "rsqrt", "reciprocal"):
        numbers = (0.25, 0.5, 1.0, 3.0)
    x = bench.m.sbuf.put(np.array([numbers], np.float32))
    d = bench.isa.activation(bench.m.sbuf.alloc(x.shape), function, x)
    want = [OF_ONE[function](number) for number in numbers]
    np.testing.assert_allclose(d.numpy()[0], want, rtol=1e-6)
