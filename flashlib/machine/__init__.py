"""Simulate an accelerator core of 128 partitions; refuse with reasons (chapter 15).

>>> m = Machine(spec=NC_V3)
>>> tile = m.sbuf.alloc((128, 8))
>>> m.isa.memset(tile, 0.0)
<sbuf [0:128, 8] float32>
>>> timeline(m.trace).events[0].cycles
64
"""

from flashlib.machine.machine import Machine
from flashlib.machine.pair import CorePair
from flashlib.machine.perfetto import chrome_trace, save_chrome_trace
from flashlib.machine.reference import DIFFERENCES, isa_reference
from flashlib.machine.spec import NC_V2, NC_V3, NC_V4, Spec
from flashlib.machine.timeline import Timeline, timeline, timelines
from flashlib.machine.trace import Trace, static_histogram

__all__ = [
    "DIFFERENCES",
    "NC_V2",
    "NC_V3",
    "NC_V4",
    "CorePair",
    "Machine",
    "Spec",
    "Timeline",
    "Trace",
    "chrome_trace",
    "isa_reference",
    "save_chrome_trace",
    "static_histogram",
    "timeline",
    "timelines",
]
