"""Records, counts, bytes, runs; the timeline, its costs and its order; the export."""

import json
import math

import ml_dtypes
import numpy as np
import pytest

import flashlib
from flashlib.machine import (
    NC_V3,
    Machine,
    chrome_trace,
    save_chrome_trace,
    static_histogram,
    timeline,
    timelines,
)
from flashlib.machine.isa_tensor import load_stationary_cycles

BF16 = ml_dtypes.bfloat16


def _small_program(m):
    x = m.hbm.put(np.ones((128, 4, 8), np.float32))
    with m.step("load"):
        tile = m.isa.dma_copy(m.sbuf.alloc((128, 4, 8)), x)
    with m.step("work"):
        m.isa.memset(tile[:, 0], 2.0)
        m.isa.activation(tile, "exp", tile)
        with m.step("inner"):
            m.isa.tensor_copy(tile, tile)
        m.isa.tensor_copy(tile, tile, engine="gpsimd")
    return tile


def test_records():
    m = Machine()
    _small_program(m)
    load = m.trace.records[0]
    assert (load.op, load.engine, load.step) == ("dma_copy", "dma", "load")
    assert (load.src, load.dst) == ("hbm", "sbuf")
    assert (load.nbytes, load.run_bytes) == (128 * 32 * 4, 32 * 4)
    fill = m.trace.records[1]
    assert (fill.src, fill.dst, fill.nbytes, fill.run_bytes) == (
        None,
        "sbuf",
        128 * 8 * 4,
        0,
    )
    assert [r.index for r in m.trace] == [0, 1, 2, 3, 4]
    assert [r.step for r in m.trace] == ["load", "work", "work", "inner", "work"]
    assert load.where[0] == __file__
    assert "dma_copy" in load.code


def test_histograms_and_table():
    m = Machine()
    _small_program(m)
    trace = m.trace
    assert trace.histogram() == {
        "dma_copy": 1,
        "memset": 1,
        "activation": 1,
        "tensor_copy": 2,
    }
    assert trace.histogram(by="engine") == {
        "dma": 1,
        "vector": 2,
        "scalar": 1,
        "gpsimd": 1,
    }
    assert trace.histogram(by=("step", "op"))[("inner", "tensor_copy")] == 1
    lines = trace.table().splitlines()
    assert lines[0].split() == ["step", "engine", "op", "count", "dma", "bytes"]
    assert lines[1].split() == ["load", "dma", "dma_copy", "1", "16,384"]
    assert len(lines) == 6


def test_bytes_by_memory():
    m = Machine()
    x = m.hbm.put(np.ones((64, 8), np.float32))
    narrow = m.sbuf.alloc((64, 8), BF16)
    m.isa.dma_copy(narrow, x)
    m.isa.dma_transpose(m.sbuf.alloc((8, 64), BF16), narrow)
    m.isa.dma_copy(x, narrow)
    m.isa.tensor_copy(narrow, narrow)
    index = m.sbuf.put(np.zeros((4, 1), np.uint32))
    source = x.ap([[8, 4], [1, 8]], vector_offset=index)
    m.isa.dma_copy(m.sbuf.alloc((4, 8)), source)
    # bytes are those in HBM where it takes part: float32 there, bfloat16 on chip
    assert m.trace.bytes(src="hbm", dst="sbuf") == 64 * 8 * 4 + 4 * 8 * 4
    assert m.trace.bytes(src="sbuf", dst="sbuf") == 64 * 8 * 2
    assert m.trace.bytes(dst="hbm") == 64 * 8 * 4
    assert m.trace.bytes() == 64 * 8 * (4 + 2 + 4) + 128
    assert m.trace.bytes(step="nowhere") == 0


@pytest.mark.parametrize("n", [1, 4])
def test_runs_of_the_two_ways_to_load_v(n):
    """Rows p n .. p n + n - 1 on partition p are one run; rows 128 t + p are n."""
    m, d = Machine(), 16
    v = m.hbm.put(np.ones((n * 128, d), np.float32))
    tile = m.sbuf.alloc((128, n, d))
    m.isa.dma_copy(tile, v.reshape(128, n, d))
    m.isa.dma_copy(tile, v.reshape(n, 128, d).permute((1, 0, 2)))
    assert [r.run_bytes for r in m.trace] == [n * d * 4, d * 4]


def test_static_histogram_counts_call_sites():
    def program(m, tiles):
        isa = m.isa
        for _ in range(10):
            isa.memset(tiles, 0.0)
        if tiles is None:
            m.isa.dma_copy(tiles, tiles)
            np.reciprocal(tiles)
        m.isa.no_such_instruction(tiles)

    assert static_histogram(program) == {"memset": 1, "dma_copy": 1}
    m = Machine()
    assert static_histogram(_small_program)["tensor_copy"] == 2
    _small_program(m)
    from flashlib.programs import decode_tile

    module = static_histogram(__import__("sys").modules[decode_tile.__module__])
    assert module["nc_matmul"] == 2


# -- published cost formulas ------------------------------------------------------


def _tile(m, n, memory="sbuf", dtype=np.float32, rows=128):
    tile = getattr(m, memory).alloc((rows, n), dtype)
    m.isa.memset(tile, 1.0)
    return tile


COSTS = [
    # name, program(m, n), cycles(n)
    ("copy", lambda m, n: m.isa.tensor_copy(_tile(m, n), _tile(m, n)), lambda n: n),
    (
        "add in sbuf",
        lambda m, n: m.isa.tensor_tensor(_tile(m, n), _tile(m, n), _tile(m, n), "add"),
        lambda n: 2 * n,
    ),
    (
        "add from psum",
        lambda m, n: m.isa.tensor_tensor(
            _tile(m, n), _tile(m, n, "psum"), _tile(m, n), "add"
        ),
        lambda n: n,
    ),
    (
        "add bfloat16",
        lambda m, n: m.isa.tensor_tensor(
            _tile(m, n, dtype=BF16),
            _tile(m, n, dtype=BF16),
            _tile(m, n, dtype=BF16),
            "add",
        ),
        lambda n: n,
    ),
    (
        "scalar",
        lambda m, n: m.isa.tensor_scalar(
            _tile(m, n), _tile(m, n), "add", 1.0, op1="multiply", operand1=2.0
        ),
        lambda n: n,
    ),
    (
        "fused",
        lambda m, n: m.isa.scalar_tensor_tensor(
            _tile(m, n), _tile(m, n), "add", 1.0, "multiply", _tile(m, n)
        ),
        lambda n: 2 * n,
    ),
    (
        "fused bfloat16",
        lambda m, n: m.isa.scalar_tensor_tensor(
            _tile(m, n, dtype=BF16),
            _tile(m, n, dtype=BF16),
            "subtract",
            1.0,
            "multiply",
            _tile(m, n, dtype=BF16),
        ),
        lambda n: n,
    ),
    (
        "reduce",
        lambda m, n: m.isa.tensor_reduce(_tile(m, 1), "add", _tile(m, n), axis=1),
        lambda n: n,
    ),
    (
        "reduce bfloat16",
        lambda m, n: m.isa.tensor_reduce(
            _tile(m, 1, dtype=BF16), "maximum", _tile(m, n, dtype=BF16), axis=1
        ),
        lambda n: n / 2,
    ),
    (
        "scalar reduce",
        lambda m, n: m.isa.tensor_scalar_reduce(
            _tile(m, n), _tile(m, n), "add", 1.0, "add", _tile(m, 1)
        ),
        lambda n: n + 64,
    ),
    (
        "exp",
        lambda m, n: m.isa.activation(_tile(m, n), "exp", _tile(m, n)),
        lambda n: n,
    ),
    (
        "exp and sum",
        lambda m, n: m.isa.activation_reduce(
            _tile(m, n), "exp", _tile(m, n), "add", _tile(m, 1)
        ),
        lambda n: n + 64,
    ),
    (
        "reciprocal",
        lambda m, n: m.isa.reciprocal(_tile(m, n), _tile(m, n)),
        lambda n: 8 * n,
    ),
    ("fill", lambda m, n: m.isa.memset(_tile(m, n), 1.0), lambda n: n),
    (
        "zero bfloat16",
        lambda m, n: m.isa.memset(_tile(m, n, dtype=BF16), 0.0),
        lambda n: n / 2,
    ),
    ("iota", lambda m, n: m.isa.iota(_tile(m, n), [[1, n]]), lambda n: 150 + n),
    (
        "affine",
        lambda m, n: m.isa.affine_select(_tile(m, n), [[1, n]], 0, _tile(m, n), 0.0),
        lambda n: 150 + n,
    ),
    (
        "predicated in sbuf",
        lambda m, n: m.isa.tensor_copy_predicated(
            _tile(m, n), _tile(m, n), _tile(m, n, dtype=np.uint8)
        ),
        lambda n: 2 * n,
    ),
    (
        "predicated from psum",
        lambda m, n: m.isa.tensor_copy_predicated(
            _tile(m, n), _tile(m, n, "psum"), _tile(m, n, dtype=np.uint8)
        ),
        lambda n: n,
    ),
    (
        "shuffle",
        lambda m, n: m.isa.nc_stream_shuffle(_tile(m, n), _tile(m, n), [0] * 32),
        lambda n: n,
    ),
    (
        "vector transpose",
        lambda m, n: m.isa.nc_transpose(
            _tile(m, 32, rows=32), _tile(m, 32, rows=32), engine="vector"
        ),
        lambda n: 64,
    ),
    (
        "array transpose",
        lambda m, n: m.isa.nc_transpose(_tile(m, 96, "psum"), _tile(m, 128, rows=96)),
        lambda n: 96,
    ),
]


@pytest.mark.parametrize("name, program, cycles", COSTS, ids=[c[0] for c in COSTS])
@pytest.mark.parametrize("n", [256, 400])
def test_cycles_are_the_published_formula(name, program, cycles, n):
    m = Machine()
    program(m, n)
    event = timeline(m.trace).events[-1]
    assert event.cycles == cycles(n)
    clock = NC_V3.clock_ghz[event.engine]
    assert event.end - event.start == pytest.approx(event.cycles / clock)


def test_small_instructions_take_64_cycles():
    m = Machine()
    m.isa.tensor_copy(_tile(m, 1), _tile(m, 1))
    m.isa.activation(_tile(m, 1), "exp", _tile(m, 1))
    assert [e.cycles for e in timeline(m.trace).events][-1] == 64


@pytest.mark.parametrize("k, cols, n", [(128, 128, 512), (64, 20, 5), (32, 100, 70)])
def test_matmul_cycles(k, cols, n):
    for dtype, passes in ((BF16, 1), (np.float32, 4)):
        m = Machine()
        x, y = _tile(m, cols, dtype=dtype, rows=k), _tile(m, n, dtype=dtype, rows=k)
        m.isa.nc_matmul(m.psum.alloc((cols, n)), x, y)
        record = m.trace.records[-1]
        assert timeline(m.trace).events[-1].cycles == passes * max(min(64, cols), n)
        assert load_stationary_cycles(record) == cols / 4
        assert m.trace.flops() == 2 * k * cols * n


# -- order and overlap -------------------------------------------------------------


def test_engines_overlap_and_keep_order():
    m = Machine()
    a, b = _tile(m, 960), _tile(m, 1200)
    m.isa.tensor_copy(a, a)
    m.isa.activation(b, "copy", b)
    m.isa.tensor_copy(b, b)
    fill_a, fill_b, copy_a, act_b, copy_b = timeline(m.trace).events
    assert fill_b.start == fill_a.end
    # the scalar engine starts on b while the vector engine still copies a
    assert act_b.start < copy_a.end
    assert copy_b.start >= act_b.end
    assert copy_b.start - act_b.end == pytest.approx(100 / NC_V3.clock_vector)


def test_readers_do_not_wait_for_readers_but_writers_do():
    m = Machine()
    a = _tile(m, 1200)
    m.isa.activation(m.sbuf.alloc((128, 1200)), "copy", a)
    m.isa.tensor_copy(m.sbuf.alloc((128, 1200)), a)
    m.isa.memset(a, 0.0, engine="gpsimd")
    _, act, copy, fill = timeline(m.trace).events
    assert act.start == pytest.approx(_ready(timeline(m.trace).events[0], "scalar"))
    assert copy.start < act.end
    assert fill.start == max(act.end, copy.end)


def _ready(event, engine):
    return event.end + 100 / NC_V3.clock_ghz[engine]


def test_disjoint_windows_are_independent():
    m = Machine()
    a = m.sbuf.alloc((128, 2, 512))
    m.isa.memset(a[:, 0], 0.0)
    m.isa.memset(a[:, 1], 0.0, engine="gpsimd")
    m.isa.memset(a[0:64, 0], 1.0, engine="gpsimd")
    first, second, third = timeline(m.trace).events
    assert second.start == 0.0
    assert third.start == max(first.end, second.end)


def test_accumulation_flows_without_a_wait():
    m = Machine()
    x = m.sbuf.put(np.ones((128, 128), BF16))
    total = m.psum.alloc((128, 128))
    for _ in range(3):
        m.isa.nc_matmul(total, x, x)
    events = timeline(m.trace).events
    assert [e.start for e in events] == [e.end for e in events][:-1][:0] + [
        0.0,
        events[0].end,
        events[1].end,
    ]


def test_bytes_used_again_wait_for_the_tensor_before():
    m = Machine()
    with m.psum.scope():
        first = m.psum.alloc((128, 512), bank=0)
        m.isa.memset(first, 0.0)
        m.isa.activation(m.sbuf.alloc((128, 512)), "copy", first)
    m.isa.memset(m.psum.alloc((128, 512), bank=0), 0.0)
    m.isa.memset(m.psum.alloc((128, 512), bank=1), 0.0)
    fill, copy, again, other = timeline(m.trace).events
    assert again.start == copy.end
    with m.sbuf.scope():
        tile = m.sbuf.alloc((128, 512))
        m.isa.memset(tile, 0.0, engine="gpsimd")
    m.isa.memset(m.sbuf.alloc((128, 16)), 0.0)
    events = timeline(m.trace).events
    assert events[-1].start >= events[-2].end


def test_dma_model():
    """[4 x 8 KiB] on one engine at 23 B/ns, the measured transfer of the guides."""
    m = Machine()
    x = m.hbm.put(np.ones((4, 2048), np.float32))
    m.isa.dma_copy(m.sbuf.alloc((4, 2048)), x)
    event = timeline(m.trace).events[0]
    assert event.cycles == 0
    expected = 4 * 8192 / (23 * 8192 / (8192 + 256))
    assert event.busy == pytest.approx(expected)
    assert expected == pytest.approx(1416, rel=0.04)
    assert event.end - event.start == pytest.approx(1300 + expected)


def test_dma_uses_one_engine_per_eight_partitions_and_pipelines():
    m = Machine()
    x = m.hbm.put(np.ones((128, 1024), np.float32))
    for rows in (8, 128, 128):
        m.isa.dma_copy(m.sbuf.alloc((rows, 1024)), x[:rows])
    small, large, again = timeline(m.trace).events
    assert large.busy == pytest.approx(small.busy)
    assert again.start == pytest.approx(large.start + large.busy)
    assert again.start < large.end
    transposed = Machine()
    y = transposed.hbm.put(np.ones((1024, 128), np.float32))
    transposed.isa.dma_transpose(transposed.sbuf.alloc((128, 1024)), y)
    slow = timeline(transposed.trace).events[0].busy
    copy = 512 * 1024 / 16 / (23 * 512 / (512 + 256))
    assert slow == pytest.approx(copy / 0.9)


def test_hbm_to_hbm_uses_every_engine():
    m = Machine()
    x, y = m.hbm.put(np.ones(2**16, np.float32)), m.hbm.alloc((2**16,))
    m.isa.dma_copy(y, x)
    assert timeline(m.trace).events[0].busy == pytest.approx(2**18 / 368, rel=0.01)


def test_vector_modes_shorten_busy_not_cycles():
    m = Machine()
    a, b = _tile(m, 512, dtype=BF16), _tile(m, 512, dtype=BF16)
    p = _tile(m, 512, "psum", dtype=BF16)
    m.isa.tensor_copy(a, b)
    m.isa.tensor_copy(a, p)
    m.isa.tensor_tensor(a, a, b, "add")
    m.isa.tensor_reduce(_tile(m, 1), "add", a, axis=1)
    plain = [e for e in timeline(m.trace).events if e.op != "memset"]
    fast = [e for e in timeline(m.trace, vector_modes=True).events if e.op != "memset"]
    assert [e.cycles for e in plain] == [e.cycles for e in fast]
    assert [p.busy / f.busy for p, f in zip(plain, fast, strict=True)] == [4, 2, 2, 1]


def test_busy_and_bound():
    m = Machine()
    _small_program(m)
    line = timeline(m.trace)
    busy = line.busy()
    assert line.total == max(e.end for e in line.events)
    assert busy["scalar"] == pytest.approx(64 / 1.2)
    assert busy["tensor"] == 0
    assert line.bound_by() == max(busy, key=busy.get)
    assert all(
        b.start >= a.end - 1e-9
        for engine in ("vector", "scalar", "gpsimd")
        for a, b in _neighbors(line, engine)
    )


def _neighbors(line, engine):
    own = [e for e in line.events if e.engine == engine]
    return zip(own, own[1:], strict=False)


def test_empty_trace():
    line = timeline(Machine().trace)
    assert (line.total, line.events) == (0.0, [])
    assert timelines([Machine().trace, Machine().trace])[1].total == 0.0


def test_traces_of_different_runs_do_not_join():
    from flashlib.machine import CorePair

    pair = CorePair()
    x = pair.hbm.put(np.zeros(4, np.float32))
    pair.run(lambda m: m.isa.core_barrier(x))
    with pytest.raises(flashlib.MachineError, match="two traces of one run"):
        timelines([pair.traces[0], Machine().trace])


# -- Chrome trace format -----------------------------------------------------------


def _check_schema(document):
    """The parts of the trace event format that viewers need."""
    assert set(document) == {"traceEvents", "displayTimeUnit"}
    assert document["displayTimeUnit"] in ("ms", "ns")
    named = set()
    for event in document["traceEvents"]:
        assert event["ph"] in ("M", "X")
        for key in ("pid", "tid"):
            assert type(event[key]) is int
        assert isinstance(event["name"], str) and event["name"]
        if event["ph"] == "M":
            assert event["name"] in ("process_name", "thread_name")
            assert isinstance(event["args"]["name"], str)
            if event["name"] == "thread_name":
                named.add((event["pid"], event["tid"]))
        else:
            assert isinstance(event["cat"], str)
            for key in ("ts", "dur"):
                assert math.isfinite(event[key]) and event[key] >= 0
    slices = [e for e in document["traceEvents"] if e["ph"] == "X"]
    assert {(e["pid"], e["tid"]) for e in slices} == named
    rows = {}
    for e in slices:
        rows.setdefault((e["pid"], e["tid"]), []).append((e["ts"], e["ts"] + e["dur"]))
    for spans in rows.values():
        spans.sort()
        for (_, end), (start, _) in zip(spans, spans[1:], strict=False):
            assert start >= end - 2e-6, "slices of one row overlap"
    return slices


def test_export_opens_in_the_viewer(tmp_path):
    m = Machine()
    _small_program(m)
    x = m.hbm.put(np.ones((128, 1024), np.float32))
    for _ in range(3):
        m.isa.dma_copy(m.sbuf.alloc((128, 1024)), x)
    line = timeline(m.trace)
    path = save_chrome_trace(tmp_path / "trace.json", line)
    document = json.loads(path.read_text())
    assert document == json.loads(json.dumps(chrome_trace(line)))
    slices = _check_schema(document)
    assert len(slices) == len(m.trace)
    assert {e["name"] for e in slices} == set(m.trace.histogram())
    last = max(e["ts"] + e["dur"] for e in slices)
    assert last == pytest.approx(line.total / 1000, abs=1e-5)
    assert any("tensor_copy(tile, tile)" in e["args"]["source"] for e in slices)
