"""Read time off a trace: in-order engines, published costs, our DMA model (chapter 15).

Each engine executes its instructions in program order; an instruction starts when
its engine is free, its operands are ready, and what lay in their room before is out
of use. ``cycles`` is the published formula of the instruction, bare. Ours are: 100
cycles of the consumer between a result and an instruction that waits for it, and the
DMA model

    time = 1300 ns + max over engines of bytes / (rate * run / (run + 256))

where a transfer over P partitions runs on ceil(P / 8) of 16 DMA engines, and those
engines are free again before the 1300 ns have passed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from flashlib.errors import MachineError
from flashlib.machine.instruction import REGISTRY
from flashlib.machine.spec import Spec
from flashlib.machine.storage import Storage
from flashlib.machine.trace import Operand, Record, Trace

__all__ = ["ENGINES", "Event", "Timeline", "timeline", "timelines"]

ENGINES = ("tensor", "vector", "scalar", "gpsimd", "dma")


class Event(NamedTuple):
    """One instruction in time; start and end in ns, ``busy`` ns of its engine."""

    op: str
    engine: str
    step: str
    cycles: float
    start: float
    end: float
    busy: float
    record: Record


@dataclass
class Timeline:
    """When every record of one core ran, in trace order.

    Attributes
    ----------
    events : list of Event
    """

    core: int
    events: list[Event] = field(default_factory=list)

    @property
    def total(self) -> float:
        """End of the last event, ns."""
        return max((e.end for e in self.events), default=0.0)

    def busy(self, *steps: str) -> dict[str, float]:
        """Nanoseconds in which each engine works, waiting not counted.

        With names of steps, only those count. The DMA figure is the sum over
        transfers of their bytes' time, without the latency that overlaps.
        """
        out = dict.fromkeys(ENGINES, 0.0)
        for e in self.events:
            if not steps or e.step in steps:
                out[e.engine] += e.busy
        return out

    def bound_by(self, *steps: str) -> str:
        """Name the engine that works longest."""
        busy = self.busy(*steps)
        return max(busy, key=busy.__getitem__)


def timeline(trace: Trace, *, vector_modes: bool = False) -> Timeline:
    """Compute when each record of one trace would run.

    Parameters
    ----------
    trace : Trace
    vector_modes : bool
        Count the faster modes of the vector engine from generation 3 on (2-byte
        floats in SBUF: copy and tensor_scalar 4 times, or 2 times with PSUM or
        strides; tensor_tensor 2 times). They shorten ``busy``, not ``cycles``.

    Returns
    -------
    Timeline
        Meetings with another core cost their transfer only; use :func:`timelines`
        to join two traces.
    """
    clock = _Clock(trace, vector_modes)
    for record in trace.records:
        clock.advance(record, 0.0)
    return clock.timeline


def timelines(
    traces: Sequence[Trace], *, vector_modes: bool = False
) -> tuple[Timeline, ...]:
    """Join the traces of a pair: both cores leave a meeting together."""
    clocks = [_Clock(t, vector_modes) for t in traces]
    waiting = [iter(t.records) for t in traces]
    while True:
        met = [_until_meeting(c, w) for c, w in zip(clocks, waiting, strict=True)]
        if all(r is None for r in met):
            return tuple(c.timeline for c in clocks)
        if len({r.sync if r else None for r in met}) > 1:
            raise MachineError(
                "traces have different meetings; expected the two traces of one run; "
                "both cores leave a meeting together; pass CorePair.traces"
            )
        start = max(c.earliest(r) for c, r in zip(clocks, met, strict=True))
        for clock, record in zip(clocks, met, strict=True):
            clock.advance(record, start)


def _until_meeting(clock: "_Clock", records: Iterator[Record]) -> Record | None:
    """Advance a core up to its next meeting; return that record, or None at the end."""
    for record in records:
        if record.sync is not None:
            return record
        clock.advance(record, 0.0)
    return None


class _Clock:
    """Time of one core: when engines are free and operands ready."""

    def __init__(self, trace: Trace, vector_modes: bool):
        self.spec: Spec = trace.spec
        self.clock = trace.spec.clock_ghz
        self.vector_modes = vector_modes and trace.spec.generation >= 3
        self.timeline = Timeline(trace.core)
        self.free = dict.fromkeys(ENGINES, 0.0)
        self.dma_free = [0.0] * trace.spec.dma_engines
        self.tensors = _Tensors()

    def earliest(self, record: Record) -> float:
        """When the operands are ready and the engine is free."""
        ready = 0.0
        for o in (*record.reads, *record.writes):
            ready = max(ready, self.tensors.vacated(o.tensor))
        for o in record.reads:
            for end, engine in self.tensors.writes_to(o):
                ready = max(ready, end + self._wait(record, engine))
        for o in record.writes:
            ready = max(ready, self.tensors.quiet(o))
        if record.engine == "dma":
            return max([ready, *(self.dma_free[i] for i in self._dma_lanes(record))])
        return max(ready, self.free[record.engine])

    def _wait(self, record: Record, producer: str) -> float:
        """Latency between a compute engine's result and whoever waits for it."""
        if "dma" in (producer, record.engine):
            return 0.0
        return self.spec.dependent_cycles / self.clock[record.engine]

    def advance(self, record: Record, not_before: float) -> None:
        """Place one record and remember what it read and wrote."""
        start = max(not_before, self.earliest(record))
        cycles = REGISTRY[record.op].cost.cycles(record)
        if record.engine == "dma" or record.op == "sendrecv":
            busy = self._transfer(record)
            end = start + busy + self.spec.dma_latency_ns
        else:
            busy = cycles / self.clock[record.engine] / self._speedup(record)
            end = start + busy
        if record.engine == "dma":
            for i in self._dma_lanes(record):
                self.dma_free[i] = start + busy
        else:
            # also for a message, which the gpsimd engine carries with a dma of its own
            self.free[record.engine] = end
        for o in record.reads:
            self.tensors.note_read(o, end)
        for o in record.writes:
            self.tensors.note_write(o, end, record.engine)
        self.timeline.events.append(
            Event(
                record.op, record.engine, record.step, cycles, start, end, busy, record
            )
        )

    def _dma_lanes(self, record: Record) -> range:
        """DMA engines of a transfer: eight partitions each; all for HBM to HBM."""
        chip = next(
            (o for o in (*record.writes, *record.reads) if o.memory != "hbm"), None
        )
        if chip is None:
            return range(self.spec.dma_engines)
        per = self.spec.dma_partitions_per_engine
        p0, p1 = chip.region[:2]
        return range(p0 // per, -(-p1 // per))

    def _transfer(self, record: Record) -> float:
        """Nanoseconds for the bytes alone."""
        run = record.run_bytes
        if not record.nbytes:
            return 0.0
        share = run / (run + self.spec.dma_half_run_bytes)
        rate = self.spec.dma_bytes_per_ns * share * record.rate
        return record.nbytes / len(self._dma_lanes(record)) / rate

    def _speedup(self, record: Record) -> int:
        if not self.vector_modes or record.engine != "vector":
            return 1
        operands = (*record.reads, *record.writes)
        if any(o.dtype.itemsize != 2 or o.dtype.kind in "iu" for o in operands):
            return 1
        in_sbuf = all(o.memory == "sbuf" for o in operands)
        if record.op == "tensor_tensor":
            return 2 if all(o.memory == "sbuf" for o in record.reads) else 1
        if record.op in ("tensor_copy", "tensor_scalar"):
            return 4 if in_sbuf and all(o.unit_step for o in operands) else 2
        return 1


class _Tensors:
    """Last writes and reads of every region, tensor by tensor."""

    def __init__(self):
        self.writes: dict[int, dict[tuple, tuple[float, str]]] = {}
        self.reads: dict[int, dict[tuple, float]] = {}
        self.last: dict[int, float] = {}
        self.room: dict[int, float] = {}

    def writes_to(self, o: Operand) -> Iterator[tuple[float, str]]:
        """When every write that overlaps ends, and by which engine."""
        here = o.region
        for region, written in self.writes.get(o.tensor.id, {}).items():
            if _overlap(region, here):
                yield written

    def vacated(self, tensor: Storage) -> float:
        """When the tensors that lay in the same room before are out of use.

        One that was used has itself waited for those before it. One that nothing
        used has not: what counts then is who lay there before.
        """
        if tensor.id not in self.room:
            at, seen, behind = 0.0, set(), list(tensor.predecessors)
            while behind:
                old = behind.pop()
                if old.id in self.last:
                    at = max(at, self.last[old.id])
                elif old.id not in seen:
                    seen.add(old.id)
                    behind += [s for s in old.predecessors if s.overlaps(tensor)]
            self.room[tensor.id] = at
        return self.room[tensor.id]

    def quiet(self, o: Operand) -> float:
        """When nothing reads or writes the region any more."""
        at, here = 0.0, o.region
        for region, (end, _) in self.writes.get(o.tensor.id, {}).items():
            if end > at and _overlap(region, here):
                at = end
        for region, end in self.reads.get(o.tensor.id, {}).items():
            if end > at and _overlap(region, here):
                at = end
        return at

    def note_read(self, o: Operand, end: float) -> None:
        """Remember that the region is in use until ``end``."""
        reads, here = self.reads.setdefault(o.tensor.id, {}), o.region
        reads[here] = max(end, reads.get(here, 0.0))
        self.last[o.tensor.id] = max(end, self.last.get(o.tensor.id, 0.0))

    def note_write(self, o: Operand, end: float, engine: str) -> None:
        """A write ends the history of what it covers; it came after all of it.

        A transfer too: its latency outlasts every wait for what it covers.
        """
        here = o.region
        for table in (self.writes, self.reads):
            seen = table.setdefault(o.tensor.id, {})
            for region in [r for r in seen if _covers(here, r)]:
                del seen[region]
        self.writes[o.tensor.id][here] = (end, engine)
        self.last[o.tensor.id] = max(end, self.last.get(o.tensor.id, 0.0))


def _overlap(a: tuple, b: tuple) -> bool:
    if a[0] < a[1] and (a[1] <= b[0] or b[1] <= a[0]):
        return False
    return a[2] < b[3] and b[2] < a[3]


def _covers(a: tuple, b: tuple) -> bool:
    return a[0] <= b[0] and b[1] <= a[1] and a[2] <= b[2] and b[3] <= a[3]
