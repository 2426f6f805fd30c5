"""The reference rows cover the instruction set, and differ nowhere from the code."""

import inspect
import subprocess
import sys

from flashlib.machine import DIFFERENCES, Machine, isa_reference

COMPLETE = """nc_matmul nc_transpose tensor_tensor tensor_scalar scalar_tensor_tensor
tensor_reduce tensor_scalar_reduce tensor_copy tensor_copy_predicated memset activation
activation_reduce reciprocal iota affine_select range_select select_reduce
nc_stream_shuffle dma_copy dma_transpose sendrecv core_barrier""".split()


def test_the_set_is_complete():
    assert sorted(r.name for r in isa_reference()) == sorted(COMPLETE)
    assert sorted(dir(Machine().isa)) == sorted(COMPLETE)


def test_every_row_says_what_a_reader_needs():
    isa = Machine().isa
    for row in isa_reference():
        assert row.summary.endswith(".") or row.summary.endswith(":"), row.name
        assert row.engines and row.cost and row.cost_source
        assert row.cost_source.startswith(("isa docs", "ours"))
        assert row.signature.startswith(row.name + "(")
        operands = dict(row.operands)
        assert operands, row.name
        names = list(inspect.signature(getattr(isa, row.name)).parameters)
        assert set(operands) <= set(names)
        assert names[0] in ("dst", "data")
        assert getattr(isa, row.name).__doc__.startswith(row.summary)


def test_engines_cannot_be_given_what_they_cannot_reach():
    for row in isa_reference():
        operands = dict(row.operands)
        if row.engines == ("gpsimd",):
            assert "psum" not in " ".join(operands.values())
        if row.engines == ("dma",):
            assert "psum" not in " ".join(operands.values())


def test_the_package_loads_without_the_machine():
    code = "import sys, flashlib; print('flashlib.machine' in sys.modules)"
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert out.stdout.strip() == "False"
    code = (
        "import sys, flashlib.machine, flashlib.programs; "
        "print(sorted({'numba', 'matplotlib', 'ipywidgets'} & set(sys.modules)))"
    )
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert out.stdout.strip() == "[]"


def test_differences_are_stated():
    topics = [d.topic for d in DIFFERENCES]
    assert len(set(topics)) == len(topics) >= 10
    assert all(d.real and d.here for d in DIFFERENCES)
    assert {"order of execution", "time", "not simulated"} <= set(topics)
