"""Wrong kernels for caches, tiles, cores and prefill (chapters 21, 22, 23).

>>> WRONG_CACHES["sink_in_every_tile"].fault
'It lets the sink take part in every tile.'
"""

from __future__ import annotations

import difflib
import inspect
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType, ModuleType

import numpy as np

from flashlib.machine.tile import Tile
from flashlib.mutants.cache_checks import failures
from flashlib.mutants.mutant import Listing
from flashlib.programs.cte.sizes import CteSizes, Keys, Section
from flashlib.programs.tkg import maximum, pages, softmax
from flashlib.programs.tkg.maximum import synchronized
from flashlib.programs.tkg.run import CoreRun, Softmax, Window

UINT32 = np.dtype(np.uint32)


@dataclass(frozen=True)
class WrongCache:
    """A whole kernel with one function replaced.

    Parameters
    ----------
    name : str
        As in `WRONG_CACHES`.
    chapter : int
        Where its fault is explained.
    owner : module or type
        Where the kernel looks the function up.
    step : str
        Its name there.
    wrong : callable
        What is called instead; its docstring is the fault.
    """

    name: str
    chapter: int
    owner: ModuleType | type
    step: str
    wrong: Callable

    @property
    def fault(self) -> str:
        """What is wrong, in one sentence."""
        return inspect.getdoc(self.wrong)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Put the wrong function where the kernel looks for the right one.

        For one thread at a time: the kernel is wrong for everybody meanwhile.
        """
        right = getattr(self.owner, self.step)
        setattr(self.owner, self.step, self.wrong)
        try:
            yield
        finally:
            setattr(self.owner, self.step, right)

    def source(self) -> Listing:
        """Return the wrong function as a difference from the right one."""
        lines = difflib.ndiff(_body(getattr(self.owner, self.step)), _body(self.wrong))
        kept = [x.rstrip() for x in lines if not x.startswith("?")]
        return Listing("\n".join(["```diff", *kept, "```"]))

    def failures(self) -> dict[str, str]:
        """Run every check and return the message of each that fails, by its name."""
        with self.in_place():
            return failures()

    def killed_by(self) -> tuple[str, ...]:
        """Run every check and name those that fail."""
        return tuple(self.failures())


def _body(function: Callable) -> list[str]:
    """Return the source below the docstring, a method's like a function's."""
    lines = textwrap.dedent(inspect.getsource(function)).splitlines()
    ends = [i for i, line in enumerate(lines) if line.rstrip().endswith('"""')]
    return lines[ends[-1] + 1 :]


def table_as_it_is(run: CoreRun, entries: Tile) -> Tile:
    """It takes page numbers for numbers of blocks and forgets that pages were cut."""
    m, factor, n = run.m, run.s.factor, entries.shape[0]
    row = m.sbuf.alloc((1, n, 1), UINT32)
    m.isa.dma_copy(row, entries)
    if factor == 1:
        return row.reshape(1, n)
    out = m.sbuf.alloc((1, n, factor), UINT32)
    parts = m.isa.iota(m.sbuf.alloc((1, 1, factor), UINT32), [[1, factor]])
    first, step = row.broadcast_to(out.shape), parts.broadcast_to(out.shape)
    m.isa.tensor_tensor(out, first, step, "add")
    return out.reshape(1, n * factor)


def sink_in_every_tile(run: CoreRun, win: Window) -> bool:
    """It lets the sink take part in every tile."""
    return "sink" in run.hbm and (synchronized(run) or win.last)


def old_sum_not_corrected(run: CoreRun, win: Window, soft: Softmax) -> None:
    """It adds the sum of a tile to one that is measured by another maximum."""
    m, own = run.m, soft.sums[:, 0]
    if win.first:
        m.isa.tensor_copy(soft.total, own)
        return
    m.isa.tensor_tensor(soft.total, soft.total, own, "add")
    if win.last and not synchronized(run):
        softmax._meet_at_the_end(run, soft)


def first_query_decides(
    self: CteSizes, group: int, keys: Keys, section: Section
) -> bool:
    """It computes a run of keys only if the first query of the group may see it."""
    unknown = self.moved and not self.strided_part
    if not self.causal or self.packed or section.has_prior or unknown:
        return True
    low, high = self.positions(group)
    if self.window is None:
        return low >= keys.key
    if high - (self.window - 1) > self.seq_k - 1:
        return True
    return high >= keys.key and low < keys.last + self.window


_FAULTS = (
    (21, pages, "_resized", table_as_it_is),
    (22, maximum, "takes_sink", sink_in_every_tile),
    (22, softmax, "_update_running", old_sum_not_corrected),
    (23, CteSizes, "needed", first_query_decides),
)
#: Every wrong kernel by its name.
WRONG_CACHES = MappingProxyType(
    {
        wrong.__name__: WrongCache(wrong.__name__, chapter, owner, step, wrong)
        for chapter, owner, step, wrong in _FAULTS
    }
)
