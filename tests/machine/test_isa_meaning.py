"""What each legal instruction computes, against NumPy; rounding on write included."""

import ml_dtypes
import numpy as np
import pytest

BF16 = ml_dtypes.bfloat16
FP8 = ml_dtypes.float8_e4m3
FP32_MIN = np.finfo(np.float32).min


def test_matmul_at_its_limits(bench):
    for dtype, cycles in ((BF16, 512), (np.float32, 2048)):
        x, y = bench.sbuf(128, 128, dtype=dtype), bench.sbuf(128, 512, dtype=dtype)
        d = bench.m.psum.alloc((128, 512))
        assert bench.isa.nc_matmul(d, x, y) is d
        expected = x.numpy().astype(np.float64).T @ y.numpy().astype(np.float64)
        np.testing.assert_allclose(d.numpy(), expected, rtol=1e-4, atol=1e-4)
        d.free()
        assert _cycles(bench) == cycles
    one = bench.sbuf(128, 1, dtype=BF16)
    stationary = bench.sbuf(128, 128, dtype=BF16)
    bench.isa.nc_matmul(bench.m.psum.alloc((128, 1)), stationary, one)
    assert _cycles(bench) == 64


def _cycles(bench):
    from flashlib.machine import timeline

    return timeline(bench.m.trace).events[-1].cycles


def test_accumulation_is_per_tensor_not_per_address(bench):
    """A new tensor in a used bank starts afresh."""
    a, b, c = (bench.sbuf(128, 16) for _ in range(3))
    ones = bench.m.sbuf.put(np.ones((128, 4), np.float32))
    first = bench.m.psum.alloc((16, 4), bank=2)
    bench.isa.nc_matmul(first, a, ones)
    alone = first.numpy()
    bench.isa.nc_matmul(first, b, ones)
    both = bench.m.psum.alloc((16, 4))
    bench.isa.nc_matmul(both, b, ones)
    np.testing.assert_array_equal(first.numpy(), alone + both.numpy())
    first.free()
    again = bench.m.psum.alloc((16, 4), bank=2)
    bench.isa.nc_matmul(again, c, ones)
    fresh = bench.m.psum.alloc((16, 4))
    bench.isa.nc_matmul(fresh, c, ones, accumulate=False)
    np.testing.assert_array_equal(again.numpy(), fresh.numpy())


def test_accumulate_flags(bench):
    x = bench.sbuf(64, 8)
    once, d = bench.m.psum.alloc((8, 8)), bench.m.psum.alloc((8, 8))
    bench.isa.nc_matmul(once, x, x)
    bench.isa.memset(d, 5.0)
    bench.isa.nc_matmul(d, x, x, accumulate=False)
    np.testing.assert_array_equal(d.numpy(), once.numpy())
    bench.isa.nc_matmul(d, x, x, accumulate=True)
    np.testing.assert_array_equal(d.numpy(), 2 * once.numpy())


def test_none_accumulates_place_by_place(bench):
    x = bench.sbuf(64, 8)
    d, once = bench.m.psum.alloc((8, 16)), bench.m.psum.alloc((8, 8))
    bench.isa.nc_matmul(once, x, x)
    bench.isa.nc_matmul(d[:, :8], x, x)
    wide = bench.m.sbuf.put(np.tile(x.numpy(), 2))
    bench.isa.nc_matmul(d, x, wide)
    close = {"rtol": 1e-5, "atol": 1e-5}
    np.testing.assert_allclose(d.numpy()[:, :8], 2 * once.numpy(), **close)
    np.testing.assert_allclose(d.numpy()[:, 8:], once.numpy(), **close)


def test_version_4_adds_to_memset_and_rounds_to_bfloat16(bench_of):
    b = bench_of(4)
    x = b.sbuf(64, 8)
    d, once = b.m.psum.alloc((8, 8)), b.m.psum.alloc((8, 8))
    b.isa.nc_matmul(once, x, x)
    b.isa.memset(d, 5.0)
    b.isa.nc_matmul(d, x, x, accumulate=True)
    np.testing.assert_array_equal(d.numpy(), np.float32(5) + once.numpy())
    narrow = b.m.psum.alloc((8, 8), BF16)
    b.isa.nc_matmul(narrow, x, x)
    np.testing.assert_array_equal(narrow.numpy(), once.numpy().astype(BF16))


def test_double_row_contracts_over_256(bench):
    x, y = bench.sbuf(128, 2, 16, dtype=FP8), bench.sbuf(128, 2, 8, dtype=FP8)
    d = bench.m.psum.alloc((16, 8))
    bench.isa.nc_matmul(d, x, y, perf_mode="double_row")
    a, b = (t.numpy().astype(np.float64) for t in (x, y))
    np.testing.assert_allclose(
        d.numpy(), np.einsum("kim,kin->mn", a, b), rtol=1e-5, atol=1e-5
    )
    assert _cycles(bench) == 16


@pytest.mark.parametrize("bad", [-np.inf, np.inf, np.nan])
def test_transpose_of_infinities(bench_of, bad):
    data = np.arange(512, dtype=np.float32).reshape(128, 4)
    data[5, 2] = bad
    exact, spoiled = bench_of(3), bench_of(2)
    out = {}
    for b in (exact, spoiled):
        d = b.m.psum.alloc((4, 128))
        out[b] = b.isa.nc_transpose(d, b.m.sbuf.put(data)).numpy()
    np.testing.assert_array_equal(out[exact], data.T)
    row = out[spoiled][2]
    assert np.isnan(np.delete(row, 5)).all()
    np.testing.assert_array_equal(row[5], np.float32(bad))
    np.testing.assert_array_equal(
        np.delete(out[spoiled], 2, 0), np.delete(data.T, 2, 0)
    )
    for b in (exact, spoiled):
        small = b.m.sbuf.put(data[:32])
        d = b.isa.nc_transpose(b.m.sbuf.alloc((4, 32)), small, engine="vector")
        np.testing.assert_array_equal(d.numpy(), data[:32].T)


def test_transpose_chooses_the_engine_that_reaches(bench):
    x = bench.sbuf(32, 2, 8)
    bench.isa.nc_transpose(bench.m.psum.alloc((16, 32)), x)
    bench.isa.nc_transpose(bench.m.sbuf.alloc((16, 32)), x)
    assert [r.engine for r in bench.m.trace] == ["tensor", "vector"]


def test_transpose_of_a_repeated_column_broadcasts_over_partitions(bench):
    """A step-0 source is how a [32, 1] column reaches 128 partitions."""
    column = bench.sbuf(32, 1)
    d = bench.m.psum.alloc((128, 32))
    bench.isa.nc_transpose(d, column.broadcast_to((32, 128)))
    np.testing.assert_array_equal(d.numpy(), np.tile(column.numpy().T, (128, 1)))


def test_step_0_along_free_axes(bench):
    scores, top = bench.sbuf(128, 6, 5), bench.sbuf(128, 5)
    d = bench.m.sbuf.alloc((128, 6, 5))
    wide = top[:, None, :].broadcast_to((128, 6, 5))
    bench.isa.tensor_tensor(d, scores, wide, "subtract")
    np.testing.assert_array_equal(d.numpy(), scores.numpy() - top.numpy()[:, None])


def test_stationary_may_be_strided(bench):
    """Every n-th key of a tile, the strided first product of the decode kernel."""
    keys, q = bench.sbuf(64, 512), bench.sbuf(64, 3)
    d = bench.m.psum.alloc((128, 3))
    bench.isa.nc_matmul(d, keys[:, 2::4], q)
    expected = keys.numpy()[:, 2::4].T @ q.numpy()
    np.testing.assert_allclose(d.numpy(), expected, rtol=1e-5, atol=1e-5)


def test_windows_that_start_elsewhere(bench):
    x = bench.sbuf(128, 4)
    d = bench.m.sbuf.put(np.zeros((128, 4), np.float32))
    bench.isa.tensor_copy(d[0:64], x[64:128])
    np.testing.assert_array_equal(d.numpy()[:64], x.numpy()[64:])
    scores = bench.sbuf(128, 6, 5)
    top = bench.m.sbuf.alloc((128, 5))
    bench.isa.tensor_reduce(top, "maximum", scores.permute((0, 2, 1)), axis=2)
    np.testing.assert_array_equal(top.numpy(), scores.numpy().max(1))
    row = bench.hbm(1, 4)
    bench.isa.dma_copy(d[127:128], row)
    np.testing.assert_array_equal(d.numpy()[127], row.numpy()[0])


@pytest.mark.parametrize(
    "op, expected",
    [
        ("add", np.add),
        ("subtract", np.subtract),
        ("multiply", np.multiply),
        ("maximum", np.maximum),
        ("minimum", np.minimum),
        ("divide", np.divide),
        ("less", np.less),
        ("greater_equal", np.greater_equal),
        ("equal", np.equal),
        ("logical_and", np.logical_and),
    ],
)
def test_tensor_tensor(bench, op, expected):
    x, y = bench.sbuf(64, 4, 6, dtype=BF16), bench.psum(64, 24)
    d = bench.m.sbuf.alloc((64, 24), np.float16)
    with np.errstate(all="ignore"):
        bench.isa.tensor_tensor(d, x, y, op)
        a = x.numpy().astype(np.float32).reshape(64, 24)
        b = expected(a, y.numpy()).astype(np.float16)
    np.testing.assert_array_equal(d.numpy(), b)


def test_integers_are_exact_on_gpsimd_and_rounded_on_the_vector_engine(bench):
    big = np.full((4, 1), 2**24 + 1, np.int32)
    one = np.ones((4, 1), np.int32)
    x, y = bench.m.sbuf.put(big), bench.m.sbuf.put(one)
    d = bench.m.sbuf.alloc((4, 1), np.int32)
    bench.isa.tensor_tensor(d, x, y, "add")
    assert d.numpy()[0, 0] == 2**24 + 2
    bench.isa.tensor_tensor(d, x, y, "add", engine="vector")
    assert d.numpy()[0, 0] == 2**24
    bench.isa.tensor_tensor(d, x, y, "bitwise_xor")
    assert d.numpy()[0, 0] == 2**24
    assert [r.engine for r in bench.m.trace] == ["gpsimd", "vector", "vector"]


def test_tensor_scalar(bench):
    x, s = bench.sbuf(64, 3, 4), bench.sbuf(64, 1)
    d = bench.m.sbuf.alloc((64, 12))
    bench.isa.tensor_scalar(
        d, x, "subtract", s, reverse0=True, op1="multiply", operand1=2.0
    )
    expected = (s.numpy()[:, :, None] - x.numpy()) * np.float32(2)
    np.testing.assert_array_equal(d.numpy(), expected.reshape(64, 12))
    positive = bench.m.sbuf.put(np.abs(x.numpy()) + 1)
    bench.isa.tensor_scalar(d, positive, "rsqrt", engine="gpsimd")
    np.testing.assert_allclose(
        d.numpy(), 1 / np.sqrt(positive.numpy()).reshape(64, 12), rtol=1e-6
    )
    bench.isa.tensor_scalar(
        d, x, "multiply", 3.0, op1="add", operand1=1.0, engine="scalar"
    )
    np.testing.assert_array_equal(
        d.numpy(), (x.numpy() * np.float32(3) + np.float32(1)).reshape(64, 12)
    )


def test_tensor_scalar_on_bits(bench):
    x = bench.sbuf(8, 4, dtype=np.uint32)
    d = bench.m.sbuf.alloc((8, 4), np.uint32)
    bench.isa.tensor_scalar(d, x, "left_shift", 3, op1="bitwise_or", operand1=1)
    np.testing.assert_array_equal(d.numpy(), (x.numpy() << 3) | 1)


def test_scalar_tensor_tensor(bench):
    x, s, y = bench.sbuf(64, 8), bench.sbuf(64, 1), bench.sbuf(64, 8)
    d = bench.m.sbuf.alloc((64, 8))
    bench.isa.scalar_tensor_tensor(d, x, "multiply", s, "subtract", y)
    np.testing.assert_array_equal(d.numpy(), x.numpy() * s.numpy() - y.numpy())
    bench.isa.scalar_tensor_tensor(d, x, "add", 1.0, "subtract", y, reverse1=True)
    np.testing.assert_array_equal(d.numpy(), y.numpy() - (x.numpy() + np.float32(1)))


@pytest.mark.parametrize(
    "op, expected",
    [
        ("add", lambda x: x.sum(-1)),
        ("multiply", lambda x: x.prod(-1)),
        ("maximum", lambda x: x.max(-1)),
        ("minimum", lambda x: x.min(-1)),
        ("subtract", lambda x: 2 * x[..., 0] - x.sum(-1)),
        ("logical_or", lambda x: (x != 0).any(-1).astype(float)),
    ],
)
def test_tensor_reduce(bench, op, expected):
    x = bench.sbuf(64, 3, 2, 4)
    for axis, kept in (((2, 3), 3), (-1, 6), ((1, 2, 3), 1)):
        d = bench.m.sbuf.alloc((64, kept))
        bench.isa.tensor_reduce(d, op, x, axis, negate=True)
        want = -expected(x.numpy().astype(np.float64).reshape(64, kept, -1))
        np.testing.assert_allclose(d.numpy(), want, rtol=1e-5, atol=1e-6)


def test_reduce_of_bits(bench):
    x = bench.sbuf(8, 5, dtype=np.uint8)
    d = bench.m.sbuf.alloc((8, 1), np.uint8)
    bench.isa.tensor_reduce(d, "bitwise_or", x, axis=1)
    np.testing.assert_array_equal(d.numpy()[:, 0], np.bitwise_or.reduce(x.numpy(), 1))


def test_tensor_scalar_reduce(bench):
    x, d = bench.sbuf(64, 8), bench.m.sbuf.alloc((64, 8), BF16)
    top = bench.m.sbuf.alloc((64, 1))
    bench.isa.tensor_scalar_reduce(d, x, "multiply", 0.5, "maximum", top)
    half = x.numpy() * np.float32(0.5)
    np.testing.assert_array_equal(d.numpy(), half.astype(BF16))
    np.testing.assert_array_equal(top.numpy()[:, 0], half.max(1))


def test_copies_round_and_saturate(bench):
    values = np.array([[0.5, 1.5, 2.5, 300.0, -4.0, np.nan, np.inf, -np.inf]])
    x = bench.m.sbuf.put(values.astype(np.float32))
    small = bench.isa.tensor_copy(bench.m.sbuf.alloc((1, 8), np.uint8), x)
    np.testing.assert_array_equal(small.numpy(), [[0, 2, 2, 255, 0, 0, 255, 0]])
    wide = bench.isa.tensor_copy(bench.m.sbuf.alloc((1, 8), np.int32), x)
    info = np.iinfo(np.int32)
    np.testing.assert_array_equal(
        wide.numpy(), [[0, 2, 2, 300, -4, 0, info.max, info.min]]
    )
    third = bench.m.sbuf.put(np.full((1, 1), 1 / 3, np.float32))
    for dtype in (BF16, np.float16, FP8):
        d = bench.isa.tensor_copy(bench.m.sbuf.alloc((1, 1), dtype), third)
        assert d.numpy()[0, 0] == np.float32(1 / 3).astype(dtype)
    assert float(ml_dtypes.finfo(FP8).max) == 240


def test_copy_keeps_the_bits_of_one_type(bench):
    odd = np.array([[2**31 - 1, -(2**31), 2**24 + 1]], np.int32)
    d = bench.m.sbuf.alloc((1, 3), np.int32)
    np.testing.assert_array_equal(
        bench.isa.tensor_copy(d, bench.m.sbuf.put(odd)).numpy(), odd
    )


def test_overlapping_copy_reads_before_it_writes(bench):
    x = bench.sbuf(4, 16)
    before = x.numpy()
    bench.isa.tensor_copy(x[:, 1:], x[:, :-1])
    np.testing.assert_array_equal(x.numpy()[:, 1:], before[:, :-1])


def test_predicated_copy_keeps_stale_and_unwritten_elements(bench):
    x, p = bench.sbuf(64, 8), bench.sbuf(64, 8, dtype=np.uint8)
    stale = bench.sbuf(64, 8)
    before, flags = stale.numpy(), p.numpy() != 0
    bench.isa.tensor_copy_predicated(stale, x, p)
    np.testing.assert_array_equal(stale.numpy(), np.where(flags, x.numpy(), before))
    fresh = bench.m.sbuf.alloc((64, 8))
    bench.isa.tensor_copy_predicated(fresh, x, p)
    np.testing.assert_array_equal(np.isnan(fresh.numpy()), ~flags)
    assert not fresh.is_written()


@pytest.mark.parametrize("dtype", [np.float32, BF16, FP8, np.uint8, np.int32])
def test_memset(bench, dtype):
    d = bench.m.sbuf.alloc((16, 3), dtype)
    bench.isa.memset(d[:, 1:], 1.0)
    bench.isa.memset(d[:, :1], -np.inf)
    assert (d.numpy()[:, 1:] == np.ones((), dtype)).all()
    low = -np.inf if np.dtype(dtype).kind not in "iu" else np.iinfo(dtype).min
    assert (d.numpy()[:, 0].astype(np.float64) == low).all()


def test_memset_of_a_large_integer_is_exact(bench):
    d = bench.isa.memset(bench.m.sbuf.alloc((4, 1), np.uint32), 2**32 - 3)
    assert (d.numpy() == 2**32 - 3).all()


def test_reciprocal(bench):
    x = bench.m.sbuf.put(np.array([[2.0, -4.0, 0.0, np.inf]], np.float32))
    d = bench.isa.reciprocal(bench.m.sbuf.alloc((1, 4)), x)
    np.testing.assert_array_equal(d.numpy(), [[0.5, -0.25, np.inf, 0.0]])


def test_activation_scales_and_shifts(bench):
    x, s, t = bench.psum(64, 8), bench.sbuf(64, 1), bench.sbuf(64, 1, dtype=BF16)
    d = bench.m.sbuf.alloc((64, 8), BF16)
    bench.isa.activation(d, "exp", x, bias=t, scale=s)
    shift = t.numpy().astype(np.float32)
    expected = np.exp(x.numpy() * s.numpy() + shift).astype(BF16)
    np.testing.assert_array_equal(d.numpy(), expected)
    bench.isa.activation(d, "copy", x, bias=1.0, scale=2.0)
    expected = (x.numpy() * np.float32(2) + np.float32(1)).astype(BF16)
    np.testing.assert_array_equal(d.numpy(), expected)


def test_sine_runs_away_beyond_pi(bench):
    x = np.array([[0.5, -np.pi / 2, 9.0, -9.0]], np.float32)
    d = bench.isa.activation(bench.m.sbuf.alloc((1, 4)), "sin", bench.m.sbuf.put(x))
    inside = d.numpy()[0, :2]
    np.testing.assert_array_equal(inside, np.sin(x[0, :2]))
    np.testing.assert_allclose(d.numpy()[0, 2:], [27.65, -27.65], atol=0.01)


def test_sums_come_along_unrounded_and_survive(bench):
    x = bench.sbuf(64, 8)
    d, total = bench.m.sbuf.alloc((64, 8), BF16), bench.m.sbuf.alloc((64, 1))
    bench.isa.activation_reduce(d, "exp", x, "add", total)
    exact = np.exp(x.numpy()).sum(1)
    np.testing.assert_allclose(total.numpy()[:, 0], exact, rtol=1e-6)
    rounded = d.numpy().astype(np.float32).sum(1)
    assert np.abs(rounded - exact).max() > 1e-4
    bench.isa.activation(
        d, "exp", x, reduce_op="add", reduce_cmd="reduce", reduce_res=total
    )
    np.testing.assert_allclose(total.numpy()[:, 0], 2 * exact, rtol=1e-6)
    bench.isa.activation(d, "copy", x, reduce_cmd="reset", reduce_res=total)
    assert (total.numpy() == 0).all()


def test_iota(bench):
    d = bench.m.sbuf.alloc((8, 6), np.int32)
    bench.isa.iota(d, [[10, 2], [1, 3]], offset=100, channel_multiplier=1000)
    p, i, j = np.ogrid[:8, :2, :3]
    expected = 100 + 1000 * p + 10 * i + j
    np.testing.assert_array_equal(d.numpy(), expected.reshape(8, 6))


def test_affine_select_draws_a_causal_triangle(bench):
    x = bench.sbuf(64, 64)
    d = bench.m.sbuf.alloc((64, 64))
    bench.isa.affine_select(
        d, [[-1, 64]], 1, x, float(FP32_MIN), cmp_op="greater_equal"
    )
    i, j = np.ogrid[:64, :64]
    np.testing.assert_array_equal(d.numpy(), np.where(i >= j, x.numpy(), FP32_MIN))


def test_range_select(bench):
    x = bench.psum(64, 8)
    low = bench.m.sbuf.put((np.arange(64, dtype=np.float32) % 5)[:, None])
    high = bench.m.sbuf.put(np.full((64, 1), 13.0, np.float32))
    d, top = bench.m.sbuf.alloc((64, 8)), bench.m.sbuf.alloc((64, 1))
    bench.isa.range_select(
        d, x, "greater_equal", "less", low, high, reduce_res=top, range_start=6
    )
    index = 6 + np.arange(8)
    keep = (index >= low.numpy()) & (index < 13)
    expected = np.where(keep, x.numpy(), FP32_MIN)
    np.testing.assert_array_equal(d.numpy(), expected)
    np.testing.assert_array_equal(top.numpy()[:, 0], expected.max(1))
    narrow = bench.m.sbuf.alloc((64, 8), BF16)
    bench.isa.range_select(narrow, x, "less", "less", low, low)
    assert np.isneginf(narrow.numpy().astype(np.float32)[0]).all()


def test_select_reduce(bench):
    x, p = bench.sbuf(64, 8), bench.sbuf(64, 8, dtype=np.uint8)
    other, top = bench.sbuf(64, 1), bench.m.sbuf.alloc((64, 1))
    d = bench.m.sbuf.alloc((64, 8))
    bench.isa.select_reduce(d, p, x, other, reduce_res=top, reverse_pred=True)
    expected = np.where(p.numpy() == 0, x.numpy(), other.numpy())
    np.testing.assert_array_equal(d.numpy(), expected)
    np.testing.assert_array_equal(top.numpy()[:, 0], expected.max(1))


def test_shuffle_moves_rows_inside_quadrants(bench):
    x, d = bench.sbuf(128, 4), bench.sbuf(128, 4)
    before = d.numpy()
    mask = [255 if i == 7 else 31 - i for i in range(32)]
    bench.isa.nc_stream_shuffle(d, x, mask)
    expected = x.numpy().reshape(4, 32, 4)[:, ::-1].reshape(128, 4).copy()
    expected[7::32] = before[7::32]
    np.testing.assert_array_equal(d.numpy(), expected)


def test_shuffle_broadcasts_one_row_to_another_quadrant(bench):
    row, d = bench.sbuf(1, 4), bench.m.sbuf.alloc((128, 4))
    bench.isa.nc_stream_shuffle(d[96:128], row, [0] * 32)
    np.testing.assert_array_equal(d.numpy()[96:], np.repeat(row.numpy(), 32, 0))


def test_dma_casts_through_float32_and_reshapes(bench):
    x = bench.hbm(6, 8)
    d = bench.m.sbuf.alloc((3, 16), BF16)
    bench.isa.dma_copy(d, x)
    np.testing.assert_array_equal(d.numpy(), x.numpy().astype(BF16).reshape(3, 16))


def test_dma_broadcasts_one_row_over_partitions(bench):
    x, d = bench.hbm(1, 8), bench.m.sbuf.alloc((128, 8))
    bench.isa.dma_copy(d, x.broadcast_to((128, 8)))
    np.testing.assert_array_equal(d.numpy(), np.repeat(x.numpy(), 128, 0))


@pytest.mark.parametrize(
    "shape, axes", [((24, 6), (1, 0)), ((5, 3, 6), (2, 1, 0)), ((4, 2, 3, 6), None)]
)
def test_dma_transpose(bench, shape, axes):
    order = axes or (3, 1, 2, 0)
    for place in ("hbm", "sbuf"):
        x = getattr(bench, place)(*shape, dtype=BF16)
        d = bench.m.sbuf.alloc([shape[a] for a in order], BF16)
        bench.isa.dma_transpose(d, x, axes=axes)
        np.testing.assert_array_equal(d.numpy(), x.numpy().transpose(order))


def test_gather_takes_the_row_step_from_the_tensor(bench):
    table = bench.hbm(8, 6)
    index = bench.m.sbuf.put(np.array([[7], [0], [7], [3]], np.uint32))
    d = bench.m.sbuf.alloc((4, 3))
    # the pattern reads every second element of a row; its own row step is ignored
    src = table[2:4].ap([[1, 4], [2, 3]], vector_offset=index)
    bench.isa.dma_copy(d, src)
    np.testing.assert_array_equal(d.numpy(), table.numpy()[[7, 0, 7, 3], ::2])
    assert bench.m.trace.records[-1].nbytes == 4 * 3 * 4


def test_gather_of_reshaped_blocks(bench):
    blocks = bench.hbm(6, 4, 3)
    halves = blocks.reshape(12, 6)
    index = bench.m.sbuf.put(np.array([[11], [2]], np.int32))
    d = bench.m.sbuf.alloc((2, 6))
    bench.isa.dma_copy(d, halves.ap([[6, 2], [1, 6]], vector_offset=index))
    np.testing.assert_array_equal(d.numpy(), blocks.numpy().reshape(12, 6)[[11, 2]])


def test_gather_skips_rows_out_of_bounds(bench):
    table, d = bench.hbm(8, 6), bench.sbuf(4, 6)
    before = d.numpy()
    index = bench.m.sbuf.put(np.array([[1], [8], [0xFFFFFFFF], [2]], np.uint32))
    src = table.ap([[6, 4], [1, 6]], vector_offset=index)
    bench.isa.dma_copy(d, src, oob_mode="skip")
    np.testing.assert_array_equal(d.numpy()[[0, 3]], table.numpy()[[1, 2]])
    np.testing.assert_array_equal(d.numpy()[[1, 2]], before[[1, 2]])
    assert bench.m.trace.records[-1].nbytes == 2 * 6 * 4


@pytest.mark.parametrize("as_tile", [False, True])
def test_scalar_offset_moves_the_pattern(bench, as_tile):
    table, d = bench.hbm(8, 6), bench.sbuf(2, 6)
    offset = bench.m.sbuf.put(np.array([[5]], np.uint32)) if as_tile else 5
    src = table.ap([[6, 2], [1, 6]], scalar_offset=offset)
    bench.isa.dma_copy(d, src)
    np.testing.assert_array_equal(d.numpy(), table.numpy()[5:7])
    columns = table.ap([[6, 2], [1, 3]], scalar_offset=2, indirect_dim=1)
    part = bench.m.sbuf.alloc((2, 3))
    bench.isa.dma_copy(part, columns)
    np.testing.assert_array_equal(part.numpy(), table.numpy()[:2, 2:5])


def test_skipped_scalar_offset_leaves_dst(bench):
    table, d = bench.hbm(8, 6), bench.sbuf(2, 6)
    before = d.numpy()
    src = table.ap([[6, 2], [1, 6]], scalar_offset=7)
    bench.isa.dma_copy(d, src, oob_mode="skip")
    np.testing.assert_array_equal(d.numpy(), before)


def test_gathering_transpose_reads_indices_by_columns(bench):
    table = bench.hbm(300, 24, dtype=BF16)
    order = bench.rng.permutation(300)[:256].astype(np.uint32)
    index = bench.m.sbuf.put(np.ascontiguousarray(order.reshape(2, 128).T))
    d = bench.m.sbuf.alloc((24, 256), BF16)
    src = table.ap([[24, 256], [1, 24]], vector_offset=index)
    bench.isa.dma_transpose(d, src, axes=(1, 0))
    np.testing.assert_array_equal(d.numpy(), table.numpy()[order].T)


def test_gathering_transpose_of_blocks(bench):
    """The paged K load: [blocks, 1, block_len, d] to [d, 1, block_len, blocks]."""
    blocks = bench.hbm(40, 1, 16, 8, dtype=BF16)
    order = bench.rng.permutation(40)[:32].astype(np.uint32)
    index = bench.m.sbuf.put(order[:, None])
    d = bench.m.sbuf.alloc((8, 1, 16, 32), BF16)
    src = blocks.ap([[128, 32], [128, 1], [8, 16], [1, 8]], vector_offset=index)
    bench.isa.dma_transpose(d, src)
    np.testing.assert_array_equal(
        d.numpy(), blocks.numpy()[order].transpose(3, 1, 2, 0)
    )
