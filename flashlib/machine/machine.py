"""Put one core together: memories, instruction set, trace (chapter 15).

Programs are eager and destination first: ``machine.isa.op(dst, ...)`` runs at once,
returns dst and leaves one record in ``machine.trace``.
"""

import functools
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager

import numpy as np

from flashlib.errors import MachineError, shown
from flashlib.machine import (  # noqa: F401 - importing declares the instructions
    isa_copy,
    isa_dma,
    isa_gpsimd,
    isa_pair,
    isa_reduce,
    isa_scalar,
    isa_select,
    isa_tensor,
    isa_vector,
)
from flashlib.machine.instruction import REGISTRY, Instruction
from flashlib.machine.memory import Hbm, Psum, Sbuf
from flashlib.machine.spec import NC_V3, Spec
from flashlib.machine.trace import Trace

__all__ = ["Core", "Isa", "Machine"]


class Isa:
    """The instruction set of one core: one callable per declared instruction.

    ``machine.isa.nc_matmul(dst, stationary, moving)``; ``help`` on any of them shows
    its operands. :func:`flashlib.machine.isa_reference` lists all.
    """

    def __init__(self, core: "Core"):
        for name, declared in REGISTRY.items():
            setattr(self, name, _bound(core, declared))

    def __dir__(self) -> list[str]:
        return list(REGISTRY)


def _bound(core: "Core", declared: Instruction) -> Callable:
    """Bind a declaration to a core under its own name and signature."""
    run = declared.run

    @functools.wraps(declared.body)
    def call(*args, **kwargs):
        caller = sys._getframe(1)
        where = (caller.f_code.co_filename, caller.f_lineno)
        return run(core, args, kwargs, where)

    call.__signature__ = declared.signature
    return call


class Core:
    """The state of one core: what instructions read and change.

    Kept apart from :class:`Machine` so that nothing refers back to it: memory is
    given back as soon as a machine goes out of use.
    """

    def __init__(self, spec: Spec, hbm: Hbm | None, number: int):
        if not isinstance(spec, Spec):
            raise MachineError(
                f"spec has {shown(spec)}; expected NC_V2, NC_V3, NC_V4 or another "
                "Spec; every limit comes from it; pass one of these"
            )
        self.spec = spec
        self.core = number
        self.hbm = Hbm(spec) if hbm is None else hbm
        self.sbuf = Sbuf(spec)
        self.psum = Psum(spec)
        self.memories = {"hbm": self.hbm, "sbuf": self.sbuf, "psum": self.psum}
        self.trace = Trace(spec, number)
        #: The pair this core belongs to, if any.
        self.pair = None
        #: Running sums of the scalar engine, one per lane, and which were reset.
        self.sum_registers = np.zeros(spec.partitions, np.float32)
        self.sums_known = np.zeros(spec.partitions, bool)


class Machine:
    """One simulated core.

    Parameters
    ----------
    spec : Spec
        The generation; NeuronCore-v3 unless said otherwise.

    Attributes
    ----------
    hbm, sbuf, psum : memories with ``put`` and ``alloc``
    isa : Isa
    trace : Trace
    core : int
        Number of the core in its pair; 0 when alone.

    Examples
    --------
    >>> m = Machine()
    >>> ones = m.sbuf.put(np.ones((128, 4), np.float32))
    >>> out = m.isa.nc_matmul(m.psum.alloc((4, 4)), ones, ones)
    >>> float(out.numpy()[0, 0]), m.trace.histogram()
    (128.0, {'nc_matmul': 1})
    """

    def __init__(self, spec: Spec = NC_V3, *, hbm: Hbm | None = None, core: int = 0):
        self.state = Core(spec, hbm, core)
        self.spec = spec
        self.core = core
        self.hbm, self.sbuf, self.psum = self.state.memories.values()
        self.trace = self.state.trace
        self.isa = Isa(self.state)

    def __repr__(self) -> str:
        return (
            f"<machine {self.spec.name} core {self.core}: {len(self.trace)} records, "
            f"sbuf {self.sbuf.used} of {self.spec.sbuf_bytes_per_partition} bytes, "
            f"psum banks free {list(self.psum.free_banks)}>"
        )

    def step(self, name: str) -> AbstractContextManager[None]:
        """Name the step of the program for the records made inside ``with``."""
        return self.trace.named(name)
