"""Arguments that are nearly right: flags that are no bool, fractions that would be
cut, numbers beyond 32 bits. Each is refused as the machine's own error, or works."""

import ml_dtypes
import numpy as np
import pytest

import flashlib
from flashlib.machine import NC_V3, Machine
from flashlib.machine.pair import CorePair

BF16 = ml_dtypes.bfloat16
MachineError = flashlib.MachineError
FreeSizeError = flashlib.FreeSizeError
OutOfBoundsError = flashlib.OutOfBoundsError

NO_FLAGS = [0, 1, "no", [], None, np.array([True, False]), 1.0]


def _id(value):
    return repr(value).replace(" ", "")


# -- flags ------------------------------------------------------------------------


@pytest.mark.parametrize("value", [v for v in NO_FLAGS if v is not None], ids=_id)
def test_accumulate_is_a_bool_or_none(bench, value):
    x, d = bench.sbuf(64, 8), bench.m.psum.alloc((8, 8))
    bench._keep(d)
    bench.isa.nc_matmul(d, x, x)
    with bench.refuses(MachineError, "accumulate has ", "True or False"):
        bench.isa.nc_matmul(d, x, x, accumulate=value)


def test_a_numpy_bool_accumulates_like_a_python_bool(bench):
    x = bench.sbuf(64, 8)
    once, d = bench.m.psum.alloc((8, 8)), bench.m.psum.alloc((8, 8))
    bench.isa.nc_matmul(once, x, x)
    for _ in range(2):
        bench.isa.nc_matmul(d, x, x, accumulate=np.False_)
        np.testing.assert_array_equal(d.numpy(), once.numpy())
    bench.isa.nc_matmul(d, x, x, accumulate=np.True_)
    np.testing.assert_array_equal(d.numpy(), 2 * once.numpy())


@pytest.mark.parametrize("value", NO_FLAGS, ids=_id)
@pytest.mark.parametrize("name", ["negate", "reverse0", "reverse1", "reverse_pred"])
def test_other_flags_are_bools(bench, name, value):
    x, y, d = (bench.sbuf(32, 8) for _ in range(3))
    column, marks = bench.sbuf(32, 1), bench.sbuf(32, 8, dtype=np.uint8)
    isa, flag = bench.isa, {name: value}
    calls = {
        "negate": [lambda: isa.tensor_reduce(column, "add", x, 1, **flag)],
        "reverse_pred": [lambda: isa.select_reduce(d, marks, x, 0.0, **flag)],
    }
    scalars = [
        lambda: isa.tensor_scalar(d, x, "add", 1.0, op1="add", operand1=1.0, **flag),
        lambda: isa.scalar_tensor_tensor(d, x, "add", 1.0, "add", y, **flag),
    ]
    for call in calls.get(name, scalars):
        with bench.refuses(MachineError, f"{name} has ", "True or False"):
            call()


# -- whole numbers ----------------------------------------------------------------

NOT_WHOLE = [1.5, 1.0, None, "1", True, 2**31, -(2**31) - 1, [1], 10**30]


@pytest.mark.parametrize("value", NOT_WHOLE, ids=_id)
def test_offsets_are_integers_of_32_bits(bench, value):
    x, table, d = bench.sbuf(32, 8), bench.hbm(8, 8), bench.sbuf(2, 8)
    numbers, column = bench.sbuf(32, 8, dtype=np.int32), bench.sbuf(32, 1)
    isa, pattern = bench.isa, [[8, 2], [1, 8]]
    calls = {
        "offset": [
            lambda: isa.iota(numbers, [[1, 8]], offset=value),
            lambda: isa.affine_select(x, [[1, 8]], 1, x, 0.0, offset=value),
            lambda: table.ap(pattern, value),
        ],
        "channel_multiplier": [
            lambda: isa.iota(numbers, [[1, 8]], channel_multiplier=value),
            lambda: isa.affine_select(x, [[1, 8]], value, x, 0.0),
        ],
        "range_start": [
            lambda: isa.range_select(
                x, x, "less", "less", column, column, range_start=value
            )
        ],
        "indirect_dim": [
            lambda: isa.dma_copy(
                d, table.ap(pattern, scalar_offset=1, indirect_dim=value)
            )
        ],
        "scalar_offset": [
            lambda: isa.dma_copy(d, table.ap(pattern, scalar_offset=value))
        ],
    }
    if value is None:
        del calls["scalar_offset"]
    for name, several in calls.items():
        for call in several:
            with bench.refuses(MachineError, f"{name} has ", "integer"):
                call()


def test_numpy_integers_are_integers(bench):
    x, d = bench.sbuf(8, 4), bench.sbuf(8, 4, dtype=np.int32)
    one, out = np.int64(1), bench.m.sbuf.alloc((8, 1))
    bench.isa.tensor_reduce(out, "add", x, axis=one)
    np.testing.assert_allclose(out.numpy()[:, 0], x.numpy().sum(1), rtol=1e-6)
    bench.isa.tensor_reduce(out, "add", x, axis=(-one,))
    bench.isa.iota(d, [[np.int8(1), 4]], offset=np.int8(100), channel_multiplier=one)
    assert d.numpy()[7].tolist() == [107, 108, 109, 110]
    assert x.ap([[4, 8], [1, 2]], np.uint8(2)).shape == (8, 2)
    assert x.reshape(np.int64(8), 2, 2).reshape((8, 4)).shape == (8, 4)
    assert x[np.int64(0) : np.int64(4), :: np.int64(2)].shape == (4, 2)
    assert bench.m.psum.alloc((np.int64(4), 4), bank=np.int64(5)).bank == 5


@pytest.mark.parametrize("dim", [2, 3, -1])
def test_a_pattern_moves_along_an_axis_of_the_tensor(bench, dim):
    table, d = bench.hbm(8, 6), bench.sbuf(2, 6)
    src = table.ap([[6, 2], [1, 6]], scalar_offset=1, indirect_dim=dim)
    with bench.refuses(MachineError, f"indirect_dim has {dim}", "expected 0 to 1"):
        bench.isa.dma_copy(d, src)


# -- memset -----------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int32, np.uint32])
def test_memset_saturates_every_integer_type(bench, dtype):
    d, ends = bench.m.sbuf.alloc((4, 2), dtype), np.iinfo(dtype)
    for value in (2**31, 2**40, 10**400, -(2**31) - 1, -(2**40), 7, ends.max, ends.min):
        bench.isa.memset(d, value)
        assert (d.numpy() == min(max(value, ends.min), ends.max)).all(), value
    for value, want in ((1e12, ends.max), (-1e12, ends.min), (np.nan, 0), (2.5, 2)):
        bench.isa.memset(d, value)
        assert (d.numpy() == want).all(), value


def test_memset_refuses_what_no_float_holds(bench):
    d = bench.sbuf(4, 2)
    with bench.refuses(MachineError, "value has 1000", "float32"):
        bench.isa.memset(d, 10**400)


# -- errors of Python and NumPy that are none of the machine's ----------------------


def test_integers_have_no_negative_powers(bench):
    x, d = bench.sbuf(8, 4, dtype=np.int32), bench.sbuf(8, 4, dtype=np.int32)
    exponent = bench.m.sbuf.put(np.full((8, 4), -2, np.int32))
    with bench.refuses(MachineError, "data2 has -2", "exponent"):
        bench.isa.tensor_tensor(d, x, exponent, "power")
    bench.isa.memset(exponent, 2)
    bench.isa.tensor_tensor(d, x, exponent, "power")
    np.testing.assert_array_equal(d.numpy(), x.numpy() ** 2)


ODD = {
    "axis-none": lambda b, x, d: b.isa.tensor_reduce(d, "add", x, axis=None),
    "axis-half": lambda b, x, d: b.isa.tensor_reduce(d, "add", x, axis=1.5),
    "axis-far": lambda b, x, d: b.isa.tensor_reduce(d, "add", x, axis=-5),
    "iota-flat-pattern": lambda b, x, d: b.isa.iota(d, [1, 4]),
    "iota-no-pattern": lambda b, x, d: b.isa.iota(d, None),
    "iota-long-step": lambda b, x, d: b.isa.iota(d, [[2**31, 8]]),
    "iota-many": lambda b, x, d: b.isa.iota(d, [[1, 2**40], [1, 2**40]]),
    "ap-flat-pattern": lambda b, x, d: x.ap([1, 4]),
    "ap-long-step": lambda b, x, d: x.ap([[8, 64], [10**30, 1]]),
    "transpose-axes": lambda b, x, d: b.isa.dma_transpose(d, x, axes=5),
    "permute": lambda b, x, d: x.permute(1),
    "permute-none": lambda b, x, d: x.permute(None),
    "broadcast": lambda b, x, d: x.broadcast_to(64),
    "broadcast-empty": lambda b, x, d: x[:, :1].broadcast_to((64, 0)),
    "broadcast-below": lambda b, x, d: x[:, :1].broadcast_to((64, -1)),
    "reshape": lambda b, x, d: x.reshape("64, 8"),
    "reshape-half": lambda b, x, d: x.reshape(64, 8.0),
    "reshape-far": lambda b, x, d: x.reshape(64, 10**30),
    "reshape-none": lambda b, x, d: x.reshape(None),
    "alloc-number": lambda b, x, d: b.m.sbuf.alloc(5),
    "alloc-half": lambda b, x, d: b.m.hbm.alloc((4, 2.5)),
    "put-jagged": lambda b, x, d: b.m.sbuf.put([[1], [1, 2]]),
    "shuffle-jagged": lambda b, x, d: b.isa.nc_stream_shuffle(x, x, [[1], [1, 2]]),
}


@pytest.mark.parametrize("call", ODD.values(), ids=ODD)
def test_shapes_patterns_and_axes(bench, call):
    x, d = bench.sbuf(64, 8), bench.sbuf(64, 8, dtype=np.int32)
    with bench.refuses(FreeSizeError, "expected"):
        call(bench, x, d)


def test_a_reshape_keeps_the_partition_axis(bench):
    x = bench.sbuf(1, 1)
    with bench.refuses(flashlib.PartitionError, r"shape has \(\)"):
        x.reshape(())


WINDOWS = {
    "2 ellipses": (OutOfBoundsError, lambda x: x[..., ...]),
    "2 ellipses and a colon": (OutOfBoundsError, lambda x: x[..., :, ...]),
    "step 0": (OutOfBoundsError, lambda x: x[:, ::0]),
    "index has type float": (MachineError, lambda x: x[:, 1.0:2.0]),
    "index has type str": (MachineError, lambda x: x[:, "a":]),
}


@pytest.mark.parametrize("words", WINDOWS)
def test_windows(bench, words):
    error, window = WINDOWS[words]
    x = bench.sbuf(64, 8)
    with bench.refuses(error, words.split(" and ")[0]):
        window(x)


@pytest.mark.parametrize("memory", ["hbm", "sbuf"])
def test_rows_are_gathered_and_not_scattered(bench, memory):
    x, table = bench.sbuf(4, 6), getattr(bench, memory)(8, 6)
    index = bench.m.sbuf.put(np.zeros((4, 1), np.uint32))
    rows = table.ap([[6, 4], [1, 6]], vector_offset=index)
    with bench.refuses(MachineError, "dst of dma_copy has type Gather"):
        bench.isa.dma_copy(rows, x)
    with bench.refuses(MachineError, "src of tensor_copy has type Gather"):
        bench.isa.tensor_copy(x, rows)
    with bench.refuses(MachineError, "data1 of tensor_tensor has type Gather"):
        bench.isa.tensor_tensor(x, rows, x, "add")


@pytest.mark.parametrize("bank", ["x", 1.5, [0]], ids=str)
def test_a_bank_has_a_number(bench, bank):
    with bench.refuses(flashlib.BankError, "bank has "):
        bench.m.psum.alloc((4, 4), bank=bank)


@pytest.mark.parametrize(
    "memory, error",
    [
        ("hbm", flashlib.CapacityError),
        ("sbuf", flashlib.CapacityError),
        ("psum", flashlib.BankError),
    ],
)
def test_no_memory_holds_so_much(bench, memory, error):
    with bench.refuses(error, str(10**30)):
        getattr(bench.m, memory).alloc((4, 10**30))


def test_a_machine_has_a_spec():
    with pytest.raises(MachineError, match="spec has None; expected"):
        Machine(None)


def test_messengers_take_integers():
    def program(m):
        x = m.sbuf.put(np.zeros((4, 4), np.float32))
        other = 1 - m.core
        wrong = [(float(other), other, 0), (other, bool(other), 0)]
        for ranks_and_pipe in (*wrong, (other, other, "pipe")):
            with pytest.raises(MachineError, match="expected an integer"):
                m.isa.sendrecv(x, x, *ranks_and_pipe)
        data = m.hbm.put(np.zeros(4, np.float32))
        with pytest.raises(MachineError, match="cores has None; expected"):
            m.isa.core_barrier(data, None)

    CorePair(NC_V3).run(program)


# -- calls that do not fit the signature ---------------------------------------------


def test_wrong_arguments_are_type_errors(bench):
    tile = bench.sbuf(4, 4)
    with pytest.raises(TypeError, match="memset"):
        bench.isa.memset(tile)
    with pytest.raises(TypeError, match="unexpected"):
        bench.isa.memset(tile, 0.0, speed=9)
    with pytest.raises(TypeError, match="multiple values"):
        bench.isa.memset(tile, 0.0, value=1.0)
    with pytest.raises(TypeError, match="too many"):
        bench.isa.reciprocal(tile, tile, tile)
    assert len(bench.m.trace) == 0
