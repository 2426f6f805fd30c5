"""List the instruction set and what the simulation leaves out, as rows (chapter 15).

The reference page and the page of differences are generated from these rows, so
they cannot drift from the code.
"""

import inspect
from typing import NamedTuple

from flashlib.machine.instruction import REGISTRY, Instruction
from flashlib.machine.timeline import ENGINES

__all__ = ["DIFFERENCES", "Difference", "IsaRow", "isa_reference"]


class IsaRow(NamedTuple):
    """One instruction of the reference page."""

    name: str
    signature: str
    engines: tuple[str, ...]
    operands: tuple[tuple[str, str], ...]
    summary: str
    notes: str
    cost: str
    cost_source: str
    limits: tuple[str, ...]


class Difference(NamedTuple):
    """One thing that the real machine does otherwise."""

    topic: str
    real: str
    here: str


def isa_reference() -> list[IsaRow]:
    """Return one row per instruction, engine by engine.

    Examples
    --------
    >>> row = next(r for r in isa_reference() if r.name == "nc_matmul")
    >>> row.engines, row.cost_source
    (('tensor',), 'isa docs 2.26')
    >>> row.operands
    (('dst', 'psum'), ('stationary', 'sbuf'), ('moving', 'sbuf'))
    """
    order = sorted(REGISTRY.values(), key=lambda d: ENGINES.index(d.engines[0]))
    return [_row(declared) for declared in order]


def _row(declared: Instruction) -> IsaRow:
    doc = inspect.cleandoc(declared.body.__doc__)
    summary, _, notes = doc.partition("\n")
    plain = [
        p.replace(annotation=inspect.Parameter.empty)
        for p in declared.signature.parameters.values()
    ]
    return IsaRow(
        name=declared.name,
        signature=f"{declared.name}{inspect.Signature(plain)}",
        engines=declared.engines,
        operands=tuple(
            (name, " or ".join(sorted(where)))
            for name, where in sorted(
                declared.memory.items(), key=lambda kv: declared.names.index(kv[0])
            )
        ),
        summary=summary,
        notes=notes.strip(),
        cost=declared.cost.text,
        cost_source=declared.cost.source,
        limits=declared.limits,
    )


DIFFERENCES: tuple[Difference, ...] = (
    Difference(
        "order of execution",
        "five engines and 16 DMA engines run at once; the compiler inserts semaphores",
        "one instruction after the other; overlap appears only in the timeline",
    ),
    Difference(
        "time",
        "queues, port conflicts, refresh and instruction fetch",
        "published cost formulas, a fixed wait between dependent instructions, and a "
        "DMA model that is ours",
    ),
    Difference(
        "port contention",
        "on NeuronCore-v2 vector and gpsimd exclude each other on SBUF, vector and "
        "scalar on PSUM; on v3 PSUM is shared by banks",
        "not modeled; engines never slow each other down",
    ),
    Difference(
        "stationary operand",
        "every product loads it first; the load overlaps with the pass before",
        "not part of the time; load_stationary_cycles gives its cycles",
    ),
    Difference(
        "DMA queues",
        "16 queues per engine; descriptors in HBM, or made by hardware or gpsimd",
        "one in-order queue per DMA engine; generation of descriptors costs nothing",
    ),
    Difference(
        "stride penalty",
        "an inner step of 16 bytes or more halves the bandwidth of a port",
        "not modeled",
    ),
    Difference(
        "usable SBUF",
        "a little less than the physical size: runtime and compiler keep some",
        "the physical size",
    ),
    Difference(
        "order of sums",
        "fixed by the hardware, not published",
        "NumPy's order in float32; results agree to rounding",
    ),
    Difference(
        "functions",
        "piecewise polynomials, each on its range",
        "correctly rounded or nearly so; sine alone shows its range",
    ),
    Difference(
        "NaN in maximum and minimum, casts of NaN to integers",
        "not published",
        "NaN propagates; the cast gives 0",
    ),
    Difference(
        "uninitialized memory",
        "holds whatever was there",
        "holds NaN, and reading it is an error",
    ),
    Difference(
        "compile-time and run-time errors",
        "many of these rules are checked by the compiler, some by nobody",
        "all are checked when the instruction is issued",
    ),
    Difference(
        "not simulated",
        "scatter, collectives beyond two cores, registers and loops on the device, "
        "random numbers, MX formats, tiles of the PE array, activate2 and exponential",
        "absent from the instruction set",
    ),
)
