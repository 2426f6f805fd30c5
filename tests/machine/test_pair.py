"""Two cores over one HBM: messages, barriers, deadlocks, joined time."""

import ml_dtypes
import numpy as np
import pytest

import flashlib
from flashlib.machine import NC_V2, CorePair, chrome_trace, timelines


def _swap(m, value=None, n=4, pipe=0, **more):
    mine = m.sbuf.put(np.full((8, n), m.core if value is None else value, np.float32))
    theirs = m.sbuf.alloc((8, n))
    other = 1 - m.core
    m.isa.sendrecv(theirs, mine, other, other, pipe, **more)
    return theirs.numpy()


def test_cores_exchange_and_trace_it():
    pair = CorePair()
    zero, one = pair.run(_swap)
    assert (zero == 1).all() and (one == 0).all()
    for trace in pair.traces:
        assert trace.histogram() == {"sendrecv": 1}
        assert trace.bytes() == 0, "messages are not dma traffic"
        assert trace.records[0].nbytes == 8 * 4 * 4
        assert trace.records[0].engine == "dma"


def test_in_place_exchange():
    def program(m):
        tile = m.sbuf.put(np.full((2, 2), m.core, np.float32))
        m.isa.sendrecv(tile, tile, 1 - m.core, 1 - m.core, 0)
        return tile.numpy()[0, 0]

    assert CorePair().run(program) == (1.0, 0.0)


def test_gpsimd_messenger():
    pair = CorePair()
    pair.run(lambda m: _swap(m, n=256, dma_engine="gpsimd_dma"))
    assert pair.traces[0].histogram(by="engine") == {"gpsimd": 1}
    with pytest.raises(flashlib.FreeSizeError, match="257 elements.*at most 256"):
        CorePair().run(lambda m: _swap(m, n=257, dma_engine="gpsimd_dma"))
    with pytest.raises(flashlib.MachineError, match="dma_engine has 'post'"):
        CorePair().run(lambda m: _swap(m, dma_engine="post"))


def test_barrier_orders_writes_to_shared_memory():
    pair = CorePair()
    shared = pair.hbm.alloc((2, 4))

    def program(m):
        own = m.sbuf.put(np.full((1, 4), m.core + 1, np.float32))
        m.isa.dma_copy(shared[m.core : m.core + 1], own)
        m.isa.core_barrier(shared, cores=(0, 1))
        both = m.sbuf.alloc((2, 4))
        m.isa.dma_copy(both, shared)
        return both.numpy()[:, 0].tolist()

    assert pair.run(program) == ([1.0, 2.0], [1.0, 2.0])
    lines = timelines(pair.traces)
    barrier = [line.events[1] for line in lines]
    assert barrier[0].start == barrier[1].start
    for line in lines:
        assert line.events[2].start >= line.events[1].end


def test_without_barrier_the_other_half_is_unwritten():
    pair = CorePair()
    shared = pair.hbm.alloc((2, 4))

    def program(m):
        own = m.sbuf.put(np.full((1, 4), m.core + 1, np.float32))
        m.isa.dma_copy(shared[m.core : m.core + 1], own)
        m.isa.dma_copy(m.sbuf.alloc((2, 4)), shared)

    with pytest.raises(flashlib.UninitializedError):
        pair.run(program)


def _one_sided(m):
    if m.core == 0:
        return _swap(m)
    return None


def _different_pipes(m):
    return _swap(m, pipe=m.core)


def _different_calls(m):
    if m.core == 0:
        return _swap(m)
    return m.isa.core_barrier(m.hbm.put(np.zeros(1, np.float32)))


@pytest.mark.parametrize(
    "program, words",
    [
        (_one_sided, "partner has ended"),
        (_different_pipes, "pipe_id"),
        (_different_calls, "core_barrier"),
        (lambda m: _swap(m) if m.core else None, "partner has ended"),
    ],
)
def test_deadlocks_are_refused(program, words):
    pair = CorePair()
    with pytest.raises(flashlib.MachineError, match=words):
        pair.run(program)
    assert [len(t) for t in pair.traces] == [0, 0]


def test_both_sides_agree_on_shape_and_type():
    with pytest.raises(flashlib.FreeSizeError, match="one shape"):
        CorePair().run(lambda m: _swap(m, n=4 + m.core))

    def mixed(m):
        dtype = np.float32 if m.core else ml_dtypes.bfloat16
        mine = m.sbuf.put(np.zeros((8, 4), dtype))
        m.isa.sendrecv(m.sbuf.alloc((8, 4), dtype), mine, 1 - m.core, 1 - m.core, 0)

    with pytest.raises(flashlib.DTypeError, match="one type"):
        CorePair().run(mixed)


@pytest.mark.parametrize("rank", [0, 2, -1])
def test_only_the_other_core_can_be_reached(rank):
    def program(m):
        tile = m.sbuf.put(np.zeros((8, 4), np.float32))
        send_to = rank if m.core == 0 else 0
        m.isa.sendrecv(tile, tile, send_to, 1 - m.core, 0)

    pair = CorePair()
    with pytest.raises(flashlib.MachineError, match=f"send_to has {rank} on core 0"):
        pair.run(program)


def test_shapes_of_one_call_and_cores_of_a_barrier():
    def uneven(m):
        mine = m.sbuf.put(np.zeros((8, 4), np.float32))
        m.isa.sendrecv(m.sbuf.alloc((8, 2, 2)), mine, 1 - m.core, 1 - m.core, 0)

    with pytest.raises(flashlib.FreeSizeError, match="like src"):
        CorePair().run(uneven)
    pair = CorePair()
    x = pair.hbm.put(np.zeros(4, np.float32))
    with pytest.raises(flashlib.MachineError, match=r"cores has \(0, 1, 2\)"):
        pair.run(lambda m: m.isa.core_barrier(x, cores=(0, 1, 2)))


def test_an_error_of_a_program_comes_through():
    def program(m):
        if m.core:
            raise ZeroDivisionError("core 1")
        _swap(m)

    with pytest.raises(ZeroDivisionError, match="core 1"):
        CorePair().run(program)


def test_messages_outside_a_run_and_old_generations():
    pair = CorePair()
    with pytest.raises(flashlib.MachineError, match="outside CorePair.run"):
        _swap(pair.cores[0])
    with pytest.raises(flashlib.MachineError, match="generation 3"):
        CorePair(NC_V2)


def test_time_is_joined_where_cores_meet():
    def program(m):
        tile = m.sbuf.put(np.zeros((128, 4096), np.float32))
        for _ in range(1 + 4 * m.core):
            m.isa.activation(tile, "exp", tile)
        _swap(m)
        m.isa.sendrecv(tile, tile, 1 - m.core, 1 - m.core, 1)

    pair = CorePair()
    pair.run(program)
    fast, slow = timelines(pair.traces)
    assert fast.events[-2].start == slow.events[-2].start
    assert fast.events[-1].start == slow.events[-1].start >= slow.events[4].end
    assert fast.total == slow.total
    processes = {e["pid"] for e in chrome_trace((fast, slow))["traceEvents"]}
    assert processes == {0, 1}


def test_a_run_is_the_same_every_time():
    def program(m):
        out = []
        for i in range(20):
            out.append(float(_swap(m, value=m.core * 100 + i)[0, 0]))
        return out

    first, again = CorePair().run(program), CorePair().run(program)
    assert first == again
    assert first[0] == [100.0 + i for i in range(20)]
