"""Record what ran: one record per instruction, with bytes and source line (chapter 15).

A trace knows no time. :func:`flashlib.machine.timeline` computes it afterwards
from the records, so that one run can be priced under several assumptions.
"""

import ast
import inspect
import linecache
import math
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import ModuleType
from typing import NamedTuple

import numpy as np

from flashlib.machine.spec import Spec
from flashlib.machine.storage import Storage

__all__ = ["MOVES", "Operand", "Record", "Trace", "static_histogram"]

#: The instructions whose bytes :meth:`Trace.bytes` counts.
MOVES = frozenset({"dma_copy", "dma_transpose"})


class Operand(NamedTuple):
    """What a record remembers of a tile: enough for cost and dependency, no data.

    ``start`` is the first partition (None in HBM), ``at`` the bytes from the start
    of the tensor to the first element.
    """

    name: str
    tensor: Storage
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    start: int | None
    at: int

    @property
    def memory(self) -> str:
        """``"hbm"``, ``"sbuf"`` or ``"psum"``."""
        return self.tensor.memory

    @property
    def dtype(self) -> np.dtype:
        """Element type."""
        return self.tensor.dtype

    @property
    def n(self) -> int:
        """Elements per partition."""
        return math.prod(self.shape[1:])

    @property
    def unit_step(self) -> bool:
        """True when the innermost elements lie back to back."""
        return self.strides[-1] == self.dtype.itemsize

    @property
    def region(self) -> tuple[int, int, int, int]:
        """Partitions ``[p0, p1)`` and bytes ``[lo, hi)`` inside each, bounding."""
        p0 = p1 = free = 0
        lo = hi = self.at
        if self.start is not None:
            p0, p1, free = self.start, self.start + self.shape[0], 1
            lo = hi = self.at - self.start * self.tensor.row_bytes
        for n, step in zip(self.shape[free:], self.strides[free:], strict=True):
            lo += min(0, (n - 1) * step)
            hi += max(0, (n - 1) * step)
        return p0, p1, lo, hi + self.dtype.itemsize


@dataclass(slots=True)
class Record:
    """One executed instruction.

    Attributes
    ----------
    op, engine, step : str
        Instruction, engine it ran on, and the step of the program it belongs to.
    nbytes : int
        Bytes moved by a DMA (counted in HBM where it takes part); otherwise bytes
        written.
    run_bytes : int
        Contiguous bytes per DMA descriptor; 0 for other instructions.
    rate : float
        Share of the DMA copy rate that a move reaches (1 for a plain copy); for a
        product the rows per partition (2 in double_row mode).
    sync : int or None
        Number of the meeting with the other core, if it was one.
    where : tuple of str and int
        File and line of the call.
    inputs, outputs : tuple of tuple
        Plain fields of :attr:`reads` and :attr:`writes`.
    """

    index: int
    op: str
    engine: str
    step: str
    nbytes: int
    run_bytes: int
    rate: float
    sync: int | None
    where: tuple[str, int]
    inputs: tuple[tuple, ...]
    outputs: tuple[tuple, ...]

    @property
    def reads(self) -> tuple[Operand, ...]:
        """Operands that were read, the data first."""
        return tuple(Operand(*fields) for fields in self.inputs)

    @property
    def writes(self) -> tuple[Operand, ...]:
        """Operands that were written, the destination first."""
        return tuple(Operand(*fields) for fields in self.outputs)

    @property
    def src(self) -> str | None:
        """Memory that the data came from; None for a fill."""
        return self.inputs[0][1].memory if self.inputs else None

    @property
    def dst(self) -> str | None:
        """Memory that was written."""
        return self.outputs[0][1].memory if self.outputs else None

    @property
    def n(self) -> int:
        """Elements per partition of the first input (of the output without one)."""
        return Operand(*(self.inputs or self.outputs)[0]).n

    def read(self, name: str) -> Operand | None:
        """Return the input called ``name``, or None."""
        return next((r for r in self.reads if r.name == name), None)

    @property
    def code(self) -> str:
        """The source line of the call."""
        return linecache.getline(*self.where).strip()


@dataclass
class Trace:
    """The records of one core, in program order.

    Examples
    --------
    >>> from flashlib.machine import Machine
    >>> m = Machine()
    >>> _ = m.isa.memset(m.sbuf.alloc((128, 4)), 0.0)
    >>> m.trace.histogram()
    {'memset': 1}
    """

    spec: Spec
    core: int = 0
    records: list[Record] = field(default_factory=list)
    step: str = ""

    def __len__(self) -> int:
        return len(self.records)

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records)

    @contextmanager
    def named(self, step: str) -> Iterator[None]:
        """Name the step of the program for the records made inside."""
        before, self.step = self.step, step
        try:
            yield
        finally:
            self.step = before

    def histogram(self, by: str | tuple[str, ...] = "op") -> dict:
        """Count records by ``"op"``, ``"engine"``, ``"step"`` or a tuple of these."""
        if isinstance(by, str):
            return dict(Counter(getattr(r, by) for r in self.records))
        return dict(Counter(tuple(getattr(r, k) for k in by) for r in self.records))

    def bytes(
        self,
        src: str | None = None,
        dst: str | None = None,
        step: str | None = None,
    ) -> int:
        """Sum the bytes of dma_copy, dma_transpose and gathers.

        Parameters
        ----------
        src, dst : str, optional
            Memories to count from and to; None counts all.
        step : str, optional
            Count one step only.
        """
        return sum(
            r.nbytes
            for r in self.records
            if r.op in MOVES
            and src in (None, r.src)
            and dst in (None, r.dst)
            and step in (None, r.step)
        )

    def flops(self, step: str | None = None) -> int:
        """Sum 2 K M N over the matrix products of one step, or of all."""
        total = 0
        for r in self.records:
            if r.op == "nc_matmul" and step in (None, r.step):
                stationary, moving = r.reads
                total += 2 * stationary.shape[0] * stationary.n * moving.n
        return total

    def table(self, by: tuple[str, ...] = ("step", "engine", "op")) -> str:
        """Return a text table: one line per group in order of first appearance."""
        groups: dict[tuple, list[int]] = {}
        for r in self.records:
            row = groups.setdefault(tuple(getattr(r, k) for k in by), [0, 0])
            row[0] += 1
            row[1] += r.nbytes if r.op in MOVES else 0
        lines = [(*by, "count", "dma bytes")]
        lines += [(*k, f"{c:,}", f"{b:,}" if b else "") for k, (c, b) in groups.items()]
        width = [max(len(str(line[i])) for line in lines) for i in range(len(by) + 2)]
        rows = []
        for line in lines:
            cells = [
                str(x).ljust(w) if i < len(by) else str(x).rjust(w)
                for i, (x, w) in enumerate(zip(line, width, strict=True))
            ]
            rows.append("  ".join(cells).rstrip())
        return "\n".join(rows)


def static_histogram(program: Callable | ModuleType) -> dict[str, int]:
    """Count instruction *call sites* in the source of a function or module.

    A call site is ``isa.name(...)`` or ``anything.isa.name(...)``. One site may run
    never or a thousand times: compare with :meth:`Trace.histogram`, and never
    take one for the other.

    Examples
    --------
    >>> from flashlib.programs import blocks
    >>> static_histogram(blocks.max_over_partitions)["nc_transpose"]
    1
    """
    from flashlib.machine.instruction import REGISTRY

    tree = ast.parse(textwrap.dedent(inspect.getsource(program)))
    counts: Counter[str] = Counter()
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        owner = node.func.value
        holder = getattr(owner, "attr", getattr(owner, "id", None))
        if holder == "isa" and node.func.attr in REGISTRY:
            counts[node.func.attr] += 1
    return dict(counts)
