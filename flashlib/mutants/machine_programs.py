"""Wrong decode programs, each with one wrong step (chapters 15, 16, 17).

The machine runs them without complaint: every instruction is legal. What is wrong is
what the instructions add up to.

>>> WRONG_PROGRAMS["zero_fill"].fault
'It fills the scores with 0 where minus infinity belongs.'
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from flashlib.machine.machine import Machine
from flashlib.machine.tile import Tile
from flashlib.mutants.machine_checks import failures
from flashlib.mutants.mutant import Listing
from flashlib.programs.blocks import LANES, pieces
from flashlib.programs.decode_sizes import Sizes, checked_sizes
from flashlib.programs.decode_tile import (
    FLOAT32_MIN,
    load_keys,
    load_queries,
    step1_scores,
    step2_max,
    step3_exp,
    step4_sum,
    step5_values,
    store,
    validity,
)

STEPS = MappingProxyType(
    {
        step.__name__: step
        for step in (
            step1_scores,
            step2_max,
            step3_exp,
            step4_sum,
            step5_values,
        )
    }
)


def decode_with(
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    *,
    scale: float | None = None,
    **replaced: Callable,
) -> np.ndarray:
    """Run the decode program with some of its five steps replaced.

    Parameters
    ----------
    q, k, v : ndarray
        ``[seq_q, n_heads, head_dim]``, ``[seq_k, n_kv_heads, head_dim]`` and
        ``[seq_k, n_kv_heads, head_dim_v]``.
    scale : float, optional
        1 / sqrt(head_dim) unless given.
    replaced : callable
        A step by its name, called like the right one.

    Returns
    -------
    ndarray
        ``[seq_q, n_heads, head_dim_v]``.
    """
    step = {**STEPS, **replaced}
    m, s = Machine(), checked_sizes(q, k, v)
    q_hbm, k_hbm, v_hbm = m.hbm.put(q), m.hbm.put(k), m.hbm.put(v)
    queries = load_queries(m, q_hbm, s.head_dim**-0.5 if scale is None else scale, s)
    scores = step["step1_scores"](m, queries, k_hbm, validity(m, s), s)
    peak = step["step2_max"](m, scores)
    p = step["step3_exp"](m, scores, peak, q_hbm.dtype)
    factor = step["step4_sum"](m, p)
    out = step["step5_values"](m, p, v_hbm, factor, s)
    return store(m, out, q_hbm.shape[:2], s)


@dataclass(frozen=True)
class WrongProgram:
    """A decode program with one wrong step.

    Parameters
    ----------
    name : str
        As in `WRONG_PROGRAMS`.
    chapter : int
        Where its fault is explained.
    step : str
        The step that it replaces, one of `STEPS`.
    wrong : callable
        What stands there instead; its docstring is the fault.
    """

    name: str
    chapter: int
    step: str
    wrong: Callable

    @property
    def fault(self) -> str:
        """What is wrong, in one sentence."""
        return inspect.getdoc(self.wrong)

    def __call__(
        self, q: np.ndarray, k: np.ndarray, v: np.ndarray, scale: float | None = None
    ) -> np.ndarray:
        """Run it; arguments as in `decode_with`."""
        return decode_with(q, k, v, scale=scale, **{self.step: self.wrong})

    def source(self) -> Listing:
        """Return the wrong step as a difference from the right one.

        A step that spoils the result of the right one is shown as it stands.
        """
        wrong = _body(self.wrong)
        if self.step in self.wrong.__code__.co_names:
            return _listing("python", wrong)
        lines = difflib.ndiff(_body(STEPS[self.step]), wrong)
        return _listing("diff", [x.rstrip() for x in lines if not x.startswith("?")])

    def failures(self) -> dict[str, str]:
        """Run every check and return the message of each that fails, by its name."""
        return failures(self)

    def killed_by(self) -> tuple[str, ...]:
        """Run every check and name those that fail."""
        return tuple(self.failures())


def _listing(language: str, lines: list[str]) -> Listing:
    return Listing("\n".join([f"```{language}", *lines, "```"]))


def _body(function: Callable) -> list[str]:
    """Return the source below the docstring."""
    lines = inspect.getsource(function).splitlines()
    ends = [i for i, line in enumerate(lines) if line.rstrip().endswith('"""')]
    return lines[ends[-1] + 1 :]


def products_add_up(m: Machine, queries: Tile, k_hbm: Tile, mask: Tile, s: Sizes):
    """It makes one window in PSUM for all blocks of keys, and products add up in it."""
    shape = (LANES, s.blocks, s.n_kv_heads, s.width)
    scores = m.sbuf.alloc(shape)
    with m.step("mm1"):
        m.isa.memset(scores, -np.inf)
    mask = mask.reshape(shape)
    for b in range(s.n_kv_heads):
        with m.sbuf.scope(), m.psum.scope():
            keys = load_keys(m, k_hbm[:, b], s)
            moving = queries[:, b * s.width : (b + 1) * s.width]
            raw = m.psum.alloc((LANES, 1, s.width))
            for group in pieces(s.blocks, 1):
                with m.step("mm1"):
                    for t in range(group.start, group.stop):
                        block = keys[:, t * LANES : (t + 1) * LANES]
                        m.isa.nc_matmul(
                            raw[:, t - group.start], stationary=block, moving=moving
                        )
                    m.isa.tensor_copy_predicated(
                        scores[:, group, b], raw, mask[:, group, b]
                    )
    return scores.reshape(LANES, s.blocks, s.columns)


def zero_fill(m: Machine, queries: Tile, k_hbm: Tile, mask: Tile, s: Sizes):
    """It fills the scores with 0 where minus infinity belongs."""
    shape = (LANES, s.blocks, s.n_kv_heads, s.width)
    scores = m.sbuf.alloc(shape)
    with m.step("mm1"):
        m.isa.memset(scores, 0.0)
    mask = mask.reshape(shape)
    for b in range(s.n_kv_heads):
        with m.sbuf.scope():
            keys = load_keys(m, k_hbm[:, b], s)
            moving = queries[:, b * s.width : (b + 1) * s.width]
            for group in pieces(s.blocks, s.per_group):
                with m.step("mm1"), m.psum.scope():
                    raw = m.psum.alloc((LANES, group.stop - group.start, s.width))
                    for t in range(group.start, group.stop):
                        block = keys[:, t * LANES : (t + 1) * LANES]
                        m.isa.nc_matmul(
                            raw[:, t - group.start], stationary=block, moving=moving
                        )
                    m.isa.tensor_copy_predicated(
                        scores[:, group, b], raw, mask[:, group, b]
                    )
    return scores.reshape(LANES, s.blocks, s.columns)


def max_of_the_lane(m: Machine, scores: Tile) -> Tile:
    """It subtracts the maximum of each partition, and the lanes never meet."""
    columns = scores.shape[2]
    peak = m.sbuf.alloc((LANES, columns))
    with m.step("max"), m.sbuf.scope():
        lanes = m.sbuf.alloc((LANES, columns))
        m.isa.tensor_reduce(lanes, "maximum", scores.permute((0, 2, 1)), axis=2)
        m.isa.tensor_scalar(peak, lanes, "maximum", FLOAT32_MIN)
    return peak


def sum_of_one_block(m: Machine, p: Tile) -> Tile:
    """It adds over the partitions of the first block and forgets the others."""
    return step4_sum(m, p[:, :1])


def first_sum_for_all(m: Machine, p: Tile) -> Tile:
    """It divides every head by the sum of the first."""
    factor = step4_sum(m, p)
    first = m.isa.tensor_copy(m.sbuf.alloc((LANES, 1)), factor[:, :1])
    return first.broadcast_to(factor.shape)


_FAULTS = (
    (15, "step1_scores", products_add_up),
    (16, "step1_scores", zero_fill),
    (17, "step2_max", max_of_the_lane),
    (17, "step4_sum", sum_of_one_block),
    (17, "step4_sum", first_sum_for_all),
)
#: Every wrong program by its name.
WRONG_PROGRAMS = MappingProxyType(
    {
        wrong.__name__: WrongProgram(wrong.__name__, chapter, step, wrong)
        for chapter, step, wrong in _FAULTS
    }
)
