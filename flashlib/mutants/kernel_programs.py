"""Wrong decode kernels: one function of the kernel replaced (chapters 18, 19, 20).

>>> WRONG_KERNELS["finite_fill"].fault
'It fills masked cells with the lowest float32 where minus infinity belongs.'
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType, ModuleType

from flashlib.machine.machine import Machine
from flashlib.machine.tile import Tile
from flashlib.mutants.kernel_checks import failures
from flashlib.mutants.mutant import Listing
from flashlib.programs.blocks import LANES, QUADRANT
from flashlib.programs.masks import build
from flashlib.programs.tkg import kernel, maximum
from flashlib.programs.tkg.keys import load_keys
from flashlib.programs.tkg.maximum import FLOAT32_MIN
from flashlib.programs.tkg.run import CoreRun, Softmax, Window
from flashlib.programs.tkg.scores import _multiply


@dataclass(frozen=True)
class WrongKernel:
    """The decode kernel with one function replaced.

    Parameters
    ----------
    name : str
        As in `WRONG_KERNELS`.
    chapter : int
        Where its fault is explained.
    module : module
        The module that calls the function by its name.
    step : str
        That name.
    wrong : callable
        What is called instead; its docstring is the fault.
    """

    name: str
    chapter: int
    module: ModuleType
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
        right = getattr(self.module, self.step)
        setattr(self.module, self.step, self.wrong)
        try:
            yield
        finally:
            setattr(self.module, self.step, right)

    def source(self) -> Listing:
        """Return the wrong function as a difference from the right one."""
        right = _body(getattr(self.module, self.step))
        lines = difflib.ndiff(right, _body(self.wrong))
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
    """Return the source below the docstring."""
    lines = inspect.getsource(function).splitlines()
    ends = [i for i, line in enumerate(lines) if line.rstrip().endswith('"""')]
    return lines[ends[-1] + 1 :]


def finite_fill(run: CoreRun, win: Window, mask: Tile) -> Tile:
    """It fills masked cells with the lowest float32 where minus infinity belongs."""
    m, width = run.m, run.s.width
    shape = (LANES, win.n, win.count, width)
    scores = m.sbuf.alloc(shape)
    with m.step("mm1"):
        m.isa.memset(scores, FLOAT32_MIN)
    flags = mask.reshape(shape)
    for item in range(win.count):
        with m.sbuf.scope():
            keys = load_keys(run, win, item)
            first = (win.batch + item) * width
            moving = run.queries[:, first : first + width]
            _multiply(run, win, keys, moving, scores[:, :, item], flags[:, :, item])
    return scores


def filled_with_zero(run: CoreRun, win: Window, mask: Tile) -> Tile:
    """It takes the mask for a factor, so that masked cells score 0."""
    m, width = run.m, run.s.width
    shape = (LANES, win.n, win.count, width)
    scores = m.sbuf.alloc(shape)
    with m.step("mm1"):
        m.isa.memset(scores, 0.0)
    flags = mask.reshape(shape)
    for item in range(win.count):
        with m.sbuf.scope():
            keys = load_keys(run, win, item)
            first = (win.batch + item) * width
            moving = run.queries[:, first : first + width]
            _multiply(run, win, keys, moving, scores[:, :, item], flags[:, :, item])
    return scores


def never_wraps(m: Machine, slots: Tile, start: Tile, end: Tile, pos: Tile) -> Tile:
    """It keeps what lies between start and end, also when the window wraps."""
    ge, lt, normal = (m.sbuf.alloc(slots.shape) for _ in range(3))
    m.isa.tensor_scalar(ge, slots, "greater_equal", start)
    m.isa.tensor_scalar(lt, slots, "less", end)
    return m.isa.tensor_tensor(normal, ge, lt, "multiply")


def clamped_end_wraps(
    m: Machine, slots: Tile, start: Tile, end: Tile, pos: Tile
) -> Tile:
    """It asks the clamped end whether the window wraps, and not the position."""
    ge, lt, normal, wrapped = (m.sbuf.alloc(slots.shape) for _ in range(4))
    wraps = m.sbuf.alloc((LANES, 1))
    m.isa.tensor_scalar(ge, slots, "greater_equal", start)
    m.isa.tensor_scalar(lt, slots, "less", end)
    m.isa.tensor_tensor(normal, ge, lt, "multiply")
    m.isa.tensor_tensor(wrapped, ge, lt, "maximum")
    m.isa.tensor_tensor(wraps, start, end, "greater")
    m.isa.tensor_tensor(wrapped, wrapped, normal, "subtract")
    m.isa.tensor_scalar(wrapped, wrapped, "multiply", wraps)
    return m.isa.tensor_tensor(normal, normal, wrapped, "add")


def sinks_token_by_token(run: CoreRun, win: Window, soft: Softmax) -> None:
    """It lays the sinks out as if the columns of a head were not neighbors."""
    m, s = run.m, run.s
    with m.step("sink"), m.sbuf.scope():
        row = m.sbuf.alloc((1, soft.columns))
        sink = run.hbm["sink"].reshape(1, 1, s.n_heads)
        m.isa.dma_copy(row, sink.broadcast_to((win.count, s.seq, s.n_heads)))
        for part, (rows, column) in zip(soft.parts, soft.each(), strict=True):
            own = row[:, part]
            for start in range(0, rows.stop, QUADRANT):
                stop = min(start + QUADRANT, rows.stop)
                dst = soft.peaks[start:stop, soft.sink_entry, column]
                m.isa.nc_transpose(dst, own[:, start:stop], engine="vector")


def one_sink(run: CoreRun, win: Window, soft: Softmax) -> None:
    """It gives the sink of the first head to all of them."""
    m, s = run.m, run.s
    with m.step("sink"), m.sbuf.scope():
        row = m.sbuf.alloc((1, soft.columns))
        sink = run.hbm["sink"][:1].reshape(1, 1, 1)
        m.isa.dma_copy(row, sink.broadcast_to((win.count, s.n_heads, s.seq)))
        for part, (rows, column) in zip(soft.parts, soft.each(), strict=True):
            own = row[:, part]
            for start in range(0, rows.stop, QUADRANT):
                stop = min(start + QUADRANT, rows.stop)
                dst = soft.peaks[start:stop, soft.sink_entry, column]
                m.isa.nc_transpose(dst, own[:, start:stop], engine="vector")


_FAULTS = (
    (18, kernel, "step1_scores", finite_fill),
    (18, kernel, "step1_scores", filled_with_zero),
    (19, build, "write_band", never_wraps),
    (19, build, "write_band", clamped_end_wraps),
    (20, maximum, "_load_sink", sinks_token_by_token),
    (20, maximum, "_load_sink", one_sink),
)
#: Every wrong kernel by its name.
WRONG_KERNELS = MappingProxyType(
    {
        wrong.__name__: WrongKernel(wrong.__name__, chapter, module, step, wrong)
        for chapter, module, step, wrong in _FAULTS
    }
)
