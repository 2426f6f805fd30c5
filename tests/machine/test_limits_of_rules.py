"""The last legal and the first illegal case of rules that count or divide."""

import ml_dtypes
import numpy as np
import pytest

import flashlib
from flashlib.machine import Machine, timeline

BF16 = ml_dtypes.bfloat16
FP32_MIN = np.finfo(np.float32).min


def test_sum_registers_are_those_of_the_lanes_read(bench):
    """Data on partitions 32 to 63 sums there, wherever dst lies."""
    x, d = bench.sbuf(128, 8), bench.m.sbuf.alloc((128, 8))
    scale, total = bench.sbuf(32, 1), bench.m.sbuf.alloc((32, 1))
    data, how = x[32:64], {"scale": scale, "reduce_op": "add"}
    bench.isa.activation(d[:32], "copy", data, reduce_cmd="reset_reduce", **how)
    bench.isa.activation(
        d[64:96], "copy", data, reduce_cmd="reduce", reduce_res=total, **how
    )
    want = 2 * (x.numpy()[32:64] * scale.numpy()).sum(1)
    np.testing.assert_allclose(total.numpy()[:, 0], want, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(d.numpy()[:32], x.numpy()[32:64] * scale.numpy())
    bench.isa.activation_reduce(d[96:], "copy", data, "add", total, scale=scale)
    np.testing.assert_allclose(total.numpy()[:, 0], want / 2, rtol=1e-5, atol=1e-5)
    known = bench.m.state.sums_known
    assert known[32:64].all() and not known[:32].any() and not known[64:].any()


@pytest.mark.parametrize("mode", ["error", "skip"])
def test_a_gathered_row_ends_inside_the_tensor(bench, mode):
    """Row 7 exists, but from its fourth element on six more do not."""
    table, d = bench.hbm(8, 6), bench.sbuf(2, 6)
    index = bench.m.sbuf.put(np.array([[6], [7]], np.uint32))
    src = table.ap([[6, 2], [1, 6]], 3, vector_offset=index)
    if mode == "error":
        with bench.refuses(
            flashlib.OutOfBoundsError, "vector_offset has 7", "pattern inside"
        ):
            bench.isa.dma_copy(d, src)
        return
    before = d.numpy()[1]
    bench.isa.dma_copy(d, src, oob_mode="skip")
    np.testing.assert_array_equal(d.numpy()[0], table.numpy().ravel()[39:45])
    np.testing.assert_array_equal(d.numpy()[1], before)


def test_a_negative_scalar_offset_is_outside(bench):
    """Even where the offset of the pattern would make up for it."""
    table, d = bench.hbm(8, 6), bench.sbuf(2, 6)
    src = table.ap([[6, 2], [1, 6]], 6, scalar_offset=-1)
    with bench.refuses(flashlib.OutOfBoundsError, "scalar_offset has -1"):
        bench.isa.dma_copy(d, src)


def test_a_masked_write_ends_accumulation_only_where_it_writes(bench):
    x, d = bench.sbuf(64, 8), bench._keep(bench.m.psum.alloc((8, 8)))
    bench.isa.nc_matmul(d, x, x)
    once = d.numpy()
    flags = bench.m.sbuf.put((np.arange(64).reshape(8, 8) % 8 > 3).astype(np.uint8))
    bench.isa.tensor_copy_predicated(d, bench.sbuf(8, 8), flags)
    bench.isa.nc_matmul(d[:, :4], x, x[:, :4], accumulate=True)
    np.testing.assert_array_equal(d.numpy()[:, :4], 2 * once[:, :4])
    with bench.refuses(flashlib.MachineError, "matmuls only"):
        bench.isa.nc_matmul(d[:, 4:], x, x[:, 4:], accumulate=True)


def test_every_tensor_in_freed_room_waits_for_its_last_use():
    """The first one to move in takes a part of the room, the second another."""
    m = Machine()
    old = m.sbuf.alloc((128, 4000))
    m.isa.memset(old, 0.0)
    m.isa.reciprocal(old, old)
    old.free()
    first, second = m.sbuf.alloc((128, 10)), m.sbuf.alloc((128, 10))
    for tile in (first, second):
        assert old.storage in tile.storage.predecessors
    m.isa.memset(second, 1.0, engine="gpsimd")
    events = timeline(m.trace).events
    assert events[2].start >= events[1].end


def test_a_product_may_fill_a_bank_of_a_longer_tensor(bench):
    x, y = bench.sbuf(64, 16, dtype=BF16), bench.sbuf(64, 512, dtype=BF16)
    d = bench._keep(bench.m.psum.alloc((16, 1024)))
    for first in (0, 512):
        bench.isa.nc_matmul(d[:, first : first + 512], x, y)
    with bench.refuses(flashlib.BankError, "dst"):
        bench.isa.nc_matmul(d[:, 511:1023], x, y, accumulate=False)


def test_generation_4_writes_across_banks(bench_of):
    for generation, error in ((3, flashlib.BankError), (4, None)):
        b = bench_of(generation)
        x, y = b.sbuf(64, 16, dtype=BF16), b.sbuf(64, 512, dtype=BF16)
        d = b._keep(b.m.psum.alloc((16, 1024)))
        if error:
            with b.refuses(error, "dst"):
                b.isa.nc_matmul(d[:, 256:768], x, y)
            continue
        b.isa.nc_matmul(d[:, 256:768], x, y)
        want = x.numpy().astype(np.float32).T @ y.numpy().astype(np.float32)
        np.testing.assert_allclose(d.numpy()[:, 256:768], want, rtol=1e-5, atol=1e-4)


def test_axes_of_size_1_cost_no_axis_of_the_pattern(bench):
    x = bench.sbuf(64, 4, 4, 4, 4)
    window = x[:, ::2, None, ::2, ::2, ::2]
    d = bench.m.sbuf.alloc((64, 16))
    bench.isa.tensor_copy(d, window)
    np.testing.assert_array_equal(d.numpy(), window.numpy().reshape(64, 16))


def test_the_larger_side_of_a_shuffle_sets_the_start(bench):
    x, d = bench.sbuf(128, 8), bench.sbuf(128, 8)
    with bench.refuses(
        flashlib.PartitionError, "dst has start partition 32 and 64 active"
    ):
        bench.isa.nc_stream_shuffle(d[32:64], x[:64], list(range(32)))
    bench.isa.nc_stream_shuffle(d[64:96], x[:64], list(range(32)))
    np.testing.assert_array_equal(d.numpy()[64:96], x.numpy()[:32])


def test_the_last_index_that_float32_tells_apart(bench):
    x, d = bench.sbuf(8, 8), bench.sbuf(8, 8)
    bound = bench.m.sbuf.put(np.full((8, 1), 2**24 - 2, np.float32))

    def select(start):
        bench.isa.range_select(
            d, x, "less", "less_equal", bound, bound, range_start=start
        )

    select(2**24 - 8)
    np.testing.assert_array_equal(d.numpy()[:, :6], x.numpy()[:, :6])
    assert (d.numpy()[:, 6:] == FP32_MIN).all()
    with bench.refuses(flashlib.MachineError, "range_start has 16777209"):
        select(2**24 - 7)
