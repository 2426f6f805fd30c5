"""Declare an instruction once: engines, placement, rules, meaning, cost (chapter 15).

``@instruction(...)`` stands above a body of shape rules that returns the meaning,
a function without arguments that computes the result with NumPy. Around it the
declaration checks placement and limits, then that all inputs are written; then it
runs the meaning, rounds on write and appends one record. An instruction that is
refused has changed nothing and left no record.
"""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from flashlib.errors import MachineError, PlacementError
from flashlib.machine import commit, placement, rules
from flashlib.machine.commit import Masked
from flashlib.machine.pattern import Gather
from flashlib.machine.spec import Spec
from flashlib.machine.storage import WRITTEN
from flashlib.machine.tile import ON_CHIP, Tile
from flashlib.machine.trace import Record

if TYPE_CHECKING:
    from flashlib.machine.machine import Core

__all__ = [
    "HBM_OR_SBUF",
    "PSUM",
    "REGISTRY",
    "SBUF",
    "Cost",
    "Instruction",
    "Issue",
    "Masked",
    "Meaning",
    "instruction",
]

#: Every declared instruction by name, in order of declaration.
REGISTRY: dict[str, "Instruction"] = {}

SBUF = frozenset({"sbuf"})
PSUM = frozenset({"psum"})
HBM_OR_SBUF = frozenset({"hbm", "sbuf"})


#: What a body returns: it computes the result, or one result per operand.
Meaning = Callable[[], np.ndarray | Masked | dict[str, np.ndarray | Masked]]


class Cost(NamedTuple):
    """A cost formula in engine cycles, in words and as a function of the record."""

    text: str
    cycles: Callable[[Record], float]
    source: str = "isa docs 2.26"


class Issue:
    """One execution in flight: what the body may ask and fill in."""

    nbytes: int | None = None
    run_bytes = 0
    rate = 1.0
    sync: int | None = None

    def __init__(self, machine: "Core", engine: str):
        self.machine = machine
        self.spec: Spec = machine.spec
        self.engine = engine


@dataclass(frozen=True)
class Instruction:
    """A declared instruction. Programs call it as ``machine.isa.name(...)``."""

    name: str
    engines: tuple[str, ...]
    memory: dict[str, frozenset[str]]
    writes: tuple[str, ...]
    unchecked: frozenset[str]
    cost: Cost
    limits: tuple[str, ...]
    choose: Callable | None
    body: Callable
    signature: inspect.Signature
    names: tuple[str, ...]
    defaults: dict[str, object]
    lanes: bool
    leaves: int
    gathers: tuple[str, ...]

    def run(self, machine: "Core", args: tuple, kwargs: dict, where: tuple) -> object:
        """Check, execute, record; return the destination.

        ``where`` is the file and line of the program that issued it.
        """
        values, engine = self._bind(args, kwargs)
        engine = self._engine(engine, values)
        issue = Issue(machine, engine)
        tiles = self._place(issue, values)
        with np.errstate(all="ignore"):
            meaning = self.body(issue, **values)
            for name, tile in tiles.items():
                if not tile.storage.complete and name not in self.unchecked:
                    rules.all_written(name, tile)
            results = meaning()
            if results.__class__ is not dict:
                written = (commit.fitted(values[self.writes[0]], results),)
            else:
                written = [commit.fitted(values[k], r) for k, r in results.items()]
        for tile, result, mask in written:
            commit.write(tile, result, mask, self.leaves)
        machine.trace.records.append(self._record(issue, values, tiles, where))
        return values[self.names[0]]

    def _bind(self, args: tuple, kwargs: dict) -> tuple[dict, str | None]:
        engine = None
        if "engine" in kwargs and len(self.engines) > 1:
            kwargs = dict(kwargs)
            engine = kwargs.pop("engine")
        names = self.names
        values = dict(zip(names, args, strict=False))
        taken = 0
        for name in names[len(args) :]:
            if name in kwargs:
                values[name] = kwargs[name]
                taken += 1
            elif name in self.defaults:
                values[name] = self.defaults[name]
            else:
                self._complain(args, kwargs)
        if taken != len(kwargs) or len(args) > len(names):
            self._complain(args, kwargs)
        return values, engine

    def _complain(self, args: tuple, kwargs: dict) -> None:
        """Let Python word the TypeError of a call that does not fit."""
        try:
            self.signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self.name}(): {error}") from None

    def _engine(self, engine: str | None, values: dict) -> str:
        if engine is None:
            return self.choose(values) if self.choose else self.engines[0]
        if engine not in self.engines:
            raise PlacementError(
                f"engine has {engine!r}; expected {' or '.join(self.engines)}; "
                f"{self.name} exists on no other engine"
            )
        return engine

    def _place(self, issue: Issue, values: dict) -> dict[str, Tile]:
        """Check memory, liveness, start partition and size of every operand."""
        tiles = {}
        for name, value in values.items():
            if value.__class__ is Tile:
                tiles[name] = value
            elif value.__class__ is Gather:
                if name not in self.gathers:
                    self._refuse_gather(name)
                tiles[name] = value.base
                for key, index in (("vector", value.vector), ("scalar", value.scalar)):
                    if isinstance(index, Tile):
                        tiles[f"{key}_offset"] = index
            elif name in self.memory and not self._left_out(name, value):
                self._not_a_tile(name, value)
        for name, tile in tiles.items():
            placement.check(issue, self, name, tile)
        return tiles

    def _refuse_gather(self, name: str) -> None:
        able = (f"{n} from {' and '.join(i.gathers)}" for n, i in _gathering())
        raise MachineError(
            f"{name} of {self.name} has type Gather; expected a tensor; what gathers "
            f"is {', '.join(able)}; gather into a tensor first"
        )

    def _left_out(self, name: str, value: object) -> bool:
        return name in self.defaults and value is self.defaults[name]

    def _not_a_tile(self, name: str, value: object) -> None:
        raise MachineError(
            f"{name} has type {type(value).__name__}; expected a tensor of the "
            f"machine; {self.name} works on memory; put the array in hbm or sbuf first"
        )

    def _record(
        self, issue: Issue, values: dict, tiles: dict[str, Tile], where: tuple
    ) -> Record:
        reads, writes = [], []
        for name, tile in tiles.items():
            array = tile.array
            fields = (
                name, tile.storage, array.shape, array.strides, tile.start, tile.at
            )  # fmt: skip
            (writes if name in self.writes else reads).append(fields)
        nbytes = issue.nbytes
        if nbytes is None:
            nbytes = values[self.writes[0]].nbytes
        trace = issue.machine.trace
        return Record(
            len(trace.records),
            self.name,
            issue.engine,
            trace.step,
            nbytes,
            issue.run_bytes,
            issue.rate,
            issue.sync,
            where,
            tuple(reads),
            tuple(writes),
        )


def _gathering() -> Iterator[tuple[str, Instruction]]:
    return ((name, known) for name, known in REGISTRY.items() if known.gathers)


def instruction(
    *,
    engines: tuple[str, ...],
    cost: Cost,
    memory: dict[str, frozenset[str]] | None = None,
    writes: tuple[str, ...] = ("dst",),
    partial: tuple[str, ...] = (),
    limits: tuple[str, ...] = (),
    choose: Callable | None = None,
    lanes: bool = True,
    leaves: int = WRITTEN,
    gathers: tuple[str, ...] = (),
) -> Callable[[Callable], Instruction]:
    """Declare the function below as an instruction of the machine.

    Parameters
    ----------
    engines : tuple of str
        Engines that have it, the default first.
    cost : Cost
    memory : dict of str to set of str
        Memories allowed per operand; operands named here must be tensors. Any
        other tensor operand may be in SBUF or PSUM.
    writes : tuple of str
        Operands that are written.
    partial : tuple of str
        Inputs whose unwritten elements the body itself looks after.
    limits : tuple of str
        What is refused beyond placement, for the reference page.
    choose : callable, optional
        Picks the default engine from the operands.
    lanes : bool
        False for DMA and messages, which have no lanes and no start rule.
    leaves : int
        State of the elements that it writes; PRODUCT for products.
    gathers : tuple of str
        Inputs that may be a Gather, rows chosen by data.
    """

    def declare(body: Callable) -> Instruction:
        parameters = list(inspect.signature(body).parameters.values())[1:]
        names = tuple(p.name for p in parameters)
        defaults = {p.name: p.default for p in parameters if p.default is not p.empty}
        if len(engines) > 1:
            kind = inspect.Parameter.KEYWORD_ONLY
            parameters.append(inspect.Parameter("engine", kind, default=None))
        where = {n: ON_CHIP for n in names if n in writes and n not in defaults}
        declared = Instruction(
            name=body.__name__,
            engines=engines,
            memory=where | (memory or {}),
            writes=writes,
            unchecked=frozenset(writes + partial),
            cost=cost,
            limits=limits,
            choose=choose,
            body=body,
            signature=inspect.Signature(parameters),
            names=names,
            defaults=defaults,
            lanes=lanes,
            leaves=leaves,
            gathers=gathers,
        )
        REGISTRY[declared.name] = declared
        return declared

    return declare
