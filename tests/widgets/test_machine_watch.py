"""What a watch remembers of each instruction: values, and what is alive on chip."""

import numpy as np

from flashlib.machine import Machine
from flashlib.widgets.machine_watch import Watch


def watched():
    """Return a machine and the watch in front of its instructions."""
    machine = Machine()
    machine.isa = watch = Watch(machine)
    return machine, watch


def test_inputs_are_kept_as_they_were_before_and_outputs_as_they_are_after():
    m, watch = watched()
    x = m.sbuf.put(np.full((2, 3), 5, np.float32))
    assert m.isa.tensor_scalar(x, x, "add", 2.0) is x
    m.isa.memset(x, 9.0)
    first, second = watch.moments
    assert first.record.op == "tensor_scalar" and not second.reads
    assert [set(values.ravel()) for values in first.reads.values()] == [{5.0}]
    assert [set(values.ravel()) for values in first.writes.values()] == [{7.0}]
    assert second.writes["dst"].tolist() == [[9.0] * 3] * 2


def test_only_what_is_alive_on_chip_is_held_in_order_of_address():
    m, watch = watched()
    there = m.hbm.put(np.ones((2, 3), np.float32))
    low, high = m.sbuf.alloc((2, 3)), m.sbuf.alloc((2, 5))
    with m.sbuf.scope():
        m.isa.memset(m.sbuf.alloc((2, 7)), 0.0)
    m.isa.memset(high, 0.0)
    m.isa.dma_copy(low, there)
    held = [[(x.memory, x.row_bytes) for x in one.held] for one in watch.moments]
    assert held == [
        [("sbuf", 28)],
        [("sbuf", 20)],
        [("sbuf", 12), ("sbuf", 20)],
    ]
    assert [one.used for one in watch.moments][1:] == [m.sbuf.used] * 2
