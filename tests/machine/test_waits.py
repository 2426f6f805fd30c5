"""What an instruction waits for: room, writes, reads, and the engine that is busy."""

import ml_dtypes
import numpy as np
import pytest

from flashlib.machine import NC_V2, NC_V3, CorePair, Machine, timeline, timelines

BF16 = ml_dtypes.bfloat16
WAIT = {engine: 100 / clock for engine, clock in NC_V3.clock_ghz.items()}


def _read_often(m, tile, times=3):
    """Fill a tensor, then keep it in use; return nothing, the trace tells."""
    m.isa.memset(tile, 0.0)
    for _ in range(times):
        m.isa.activation(m.sbuf.alloc((128, 512)), "copy", tile)


# -- room that another tensor had --------------------------------------------------


def _alloc(m, memory, width):
    tile = getattr(m, memory).alloc((128, width))
    assert tile.storage.offset == 0, "the test is about one and the same room"
    return tile


@pytest.mark.parametrize("memory", ["psum", "sbuf"])
@pytest.mark.parametrize("between", [[512], [1024], [256, 700], [1, 512, 1]])
def test_room_stays_taken_behind_tensors_that_nothing_used(memory, between):
    m = Machine()
    room = getattr(m, memory)
    old = room.alloc((128, 512))
    m.isa.memset(old, 0.0)
    out = m.hbm.alloc((128, 512))
    if memory == "sbuf":
        m.isa.dma_copy(out, old)
    else:
        m.isa.activation(old, "exp", old)
    old.free()
    for width in between:
        _alloc(m, memory, width).free()
    m.isa.memset(_alloc(m, memory, 512), 0.0, engine="vector")
    events = timeline(m.trace).events
    assert events[-1].start == events[-2].end > events[0].end


def test_room_stays_taken_while_three_reads_last():
    m = Machine()
    old = m.psum.alloc((128, 512), bank=0)
    _read_often(m, old)
    old.free()
    m.psum.alloc((128, 512), bank=0).free()
    m.isa.memset(m.psum.alloc((128, 512), bank=0), 0.0)
    fill, *reads, again = timeline(m.trace).events
    assert again.start == reads[-1].end > fill.end


def test_a_tensor_that_was_put_moves_in_like_any_other():
    """It leaves no record, but its room is free for it no sooner."""
    m = Machine()
    out = m.hbm.alloc((128, 512))
    with m.sbuf.scope():
        old = m.sbuf.alloc((128, 512))
        m.isa.memset(old, 0.0)
        m.isa.dma_copy(out, old)
    with m.sbuf.scope():
        given = m.sbuf.put(np.ones((128, 4), np.float32))
        m.isa.tensor_copy(m.psum.alloc((128, 4)), given)
    m.isa.memset(m.sbuf.alloc((128, 4)), 0.0, engine="gpsimd")
    _, store, read, again = timeline(m.trace).events
    assert read.start == store.end
    assert again.start == read.end


@pytest.mark.parametrize("busy, idle", [(0, 1), (1, 0)])
def test_room_beside_what_is_in_use_is_free(busy, idle):
    """An unused tensor lay over both parts; only one of them is still read."""
    m = Machine()
    with m.sbuf.scope():
        old = [m.sbuf.alloc((128, 64)) for _ in range(2)]
        for tile in old:
            m.isa.memset(tile, 0.0)
        m.isa.reciprocal(old[busy], old[busy])
    m.sbuf.alloc((128, 128)).free()
    new = [m.sbuf.alloc((128, 64)) for _ in range(2)]
    for part in (idle, busy):
        m.isa.memset(new[part], 0.0, engine="gpsimd")
    *fills, last, beside, inside = timeline(m.trace).events
    assert beside.start == fills[idle].end < last.end
    assert inside.start == last.end


@pytest.mark.parametrize("late", [0, 1, 2])
def test_a_tensor_of_three_banks_waits_for_each(late):
    m = Machine()
    old = [m.psum.alloc((128, 512)) for _ in range(3)]
    for tile in old:
        m.isa.memset(tile[:, :1], 0.0)
    for _ in range(3):
        m.isa.activation(old[late][:, :1], "exp", old[late][:, :1])
    for tile in old:
        tile.free()
    m.isa.memset(m.psum.alloc((128, 1536)), 0.0)
    events = timeline(m.trace).events
    assert events[-1].start == events[-2].end > events[2].end


def test_a_tensor_waits_only_for_the_room_that_it_takes():
    m = Machine()
    with m.sbuf.scope():
        low, high = m.sbuf.alloc((128, 64)), m.sbuf.alloc((128, 64))
        m.isa.memset(low, 0.0)
        m.isa.reciprocal(high, m.isa.memset(high, 0.0, engine="gpsimd"))
    small = m.sbuf.alloc((128, 64))
    assert small.storage.predecessors == (low.storage,)
    other = m.sbuf.alloc((128, 64))
    assert other.storage.predecessors == (high.storage,)
    assert m.sbuf.alloc((128, 64)).storage.predecessors == ()


# -- writes and reads of one tensor ------------------------------------------------


@pytest.mark.parametrize("order", ["transfer last", "transfer first"])
def test_every_write_to_an_operand_has_its_own_wait(order):
    """The transfer ends a little after the fill, and with no wait of its own."""
    m = Machine()
    tile, x = m.sbuf.alloc((128, 1290)), m.hbm.put(np.ones((128, 4), np.float32))
    steps = [
        lambda: m.isa.memset(tile[:, 4:], 0.0),
        lambda: m.isa.dma_copy(tile[:, :4], x),
    ]
    for step in steps if order == "transfer last" else steps[::-1]:
        step()
    m.isa.activation(tile, "copy", tile)
    events = {e.op: e for e in timeline(m.trace).events}
    fill, load, read = events["memset"], events["dma_copy"], events["activation"]
    assert fill.end < load.end < fill.end + WAIT["scalar"]
    assert read.start == pytest.approx(fill.end + WAIT["scalar"])


def test_a_transfer_that_ends_late_needs_no_wait():
    m = Machine()
    tile, x = m.sbuf.alloc((128, 512)), m.hbm.put(np.ones((128, 4), np.float32))
    m.isa.memset(tile, 0.0, engine="gpsimd")
    m.isa.dma_copy(tile[:, :4], x)
    m.isa.activation(tile, "copy", tile)
    _, load, read = timeline(m.trace).events
    assert read.start == load.end


def test_a_window_that_runs_backwards_waits_for_what_it_reads():
    m = Machine()
    tile = m.sbuf.alloc((128, 1024))
    m.isa.memset(tile[:, :512], 0.0, engine="gpsimd")
    m.isa.memset(tile[:, 512:], 0.0)
    copy = m.sbuf.alloc((128, 512))
    m.isa.activation(copy[:, :8], "copy", tile[:, ::-1][:, -8:])
    m.isa.activation(copy, "copy", tile[:, ::-1][:, :512])
    low, high, front, back = timeline(m.trace).events
    assert front.start == pytest.approx(low.end + WAIT["scalar"])
    assert back.start == pytest.approx(high.end + WAIT["scalar"])
    assert low.end < high.end
    regions = [r.reads[0].region for r in m.trace.records[2:]]
    assert regions == [(0, 128, 0, 32), (0, 128, 2048, 4096)]


def test_a_window_in_both_directions_has_its_bounds():
    m = Machine()
    tile = m.sbuf.put(np.zeros((128, 4, 8), np.float32))
    for window in (tile[64:, 1:3, 6:1:-2], tile[64:, 2:0:-1, 2:7:2]):
        m.isa.tensor_copy(window, window)
    for record in m.trace.records:
        assert record.reads[0].region == (64, 128, 32 + 8, 64 + 28)


# -- messages of the gpsimd engine -------------------------------------------------


def _messages(before):
    """Run ``before(m)``, then send over gpsimd, then fill with that engine."""

    def program(m):
        mine, theirs = (m.sbuf.put(np.zeros((128, 256), np.float32)) for _ in "ab")
        before(m)
        other = 1 - m.core
        m.isa.sendrecv(theirs, mine, other, other, 0, dma_engine="gpsimd_dma")
        m.isa.memset(m.sbuf.alloc((128, 64)), 0.0, engine="gpsimd")

    pair = CorePair()
    pair.run(program)
    return timelines(pair.traces)


def test_a_message_over_gpsimd_takes_its_time_and_its_engine():
    for line in _messages(lambda m: None):
        message, fill = line.events
        bytes_ns = 8 * 1024 / (23 * 1024 / (1024 + 256))
        assert message.busy == pytest.approx(bytes_ns)
        assert message.end - message.start == pytest.approx(1300 + bytes_ns)
        assert fill.start == message.end


def test_a_message_over_gpsimd_leaves_the_dma_engines_alone():
    """It neither waits for a long transfer nor sets it aside."""

    def load(m):
        x = m.hbm.put(np.zeros((128, 16384), np.float32))
        m.isa.dma_copy(m.sbuf.alloc((128, 16384)), x)

    for line in _messages(load):
        long, message, _ = line.events
        assert message.start == 0.0 and message.busy < long.busy

    def program(m):
        x = m.hbm.put(np.zeros((128, 16384), np.float32))
        m.isa.dma_copy(m.sbuf.alloc((128, 16384)), x)
        small = m.sbuf.put(np.zeros((128, 4), np.float32))
        other = 1 - m.core
        m.isa.sendrecv(small, small, other, other, 0, dma_engine="gpsimd_dma")
        m.isa.dma_copy(m.sbuf.alloc((128, 4)), x[:, :4])

    pair = CorePair()
    pair.run(program)
    for line in timelines(pair.traces):
        long, _, after = line.events
        assert after.start == pytest.approx(long.busy)


# -- faster modes of the vector engine ---------------------------------------------


def _gain(program, spec=NC_V3):
    """How much shorter the last instruction is with the modes than without."""
    m = Machine(spec)
    program(m)
    plain, fast = (timeline(m.trace, vector_modes=v).events[-1] for v in (False, True))
    return plain.busy / fast.busy


def _tile(m, dtype=BF16, memory="sbuf", width=512):
    tile = getattr(m, memory).alloc((128, width), dtype)
    m.isa.memset(tile, 1)
    return tile


@pytest.mark.parametrize("dtype, gain", [(BF16, 4), (np.float16, 4), (np.uint16, 1)])
def test_modes_are_for_floats_of_two_bytes(dtype, gain):
    assert _gain(lambda m: m.isa.tensor_copy(_tile(m, dtype), _tile(m, dtype))) == gain
    assert _gain(lambda m: m.isa.tensor_copy(_tile(m), _tile(m, np.float32))) == 1


@pytest.mark.parametrize("from_psum, gain", [((), 2), ("a", 1), ("b", 1)])
def test_two_tensors_are_read_faster_from_sbuf_only(from_psum, gain):
    def program(m):
        a, b = (
            _tile(m, memory="psum" if name in from_psum else "sbuf") for name in "ab"
        )
        m.isa.tensor_tensor(_tile(m), a, b, "add")

    assert _gain(program) == gain


@pytest.mark.parametrize("strided", ["src", "dst"])
def test_strides_halve_the_gain_of_a_copy(strided):
    def window(m, name):
        return _tile(m, width=1024)[:, ::2] if name == strided else _tile(m)

    def copy(m):
        m.isa.tensor_copy(window(m, "dst"), window(m, "src"))

    def scale(m):
        m.isa.tensor_scalar(window(m, "dst"), window(m, "src"), "multiply", 2.0)

    assert _gain(copy) == _gain(scale) == 2


def test_generation_2_has_no_modes():
    def copy(m):
        m.isa.tensor_copy(_tile(m), _tile(m))

    assert (_gain(copy), _gain(copy, NC_V2)) == (4, 1)


def test_modes_are_those_of_the_vector_engine():
    def copy(engine):
        return lambda m: m.isa.tensor_copy(_tile(m), _tile(m), engine=engine)

    assert [_gain(copy(e)) for e in ("vector", "scalar", "gpsimd")] == [4, 1, 1]
