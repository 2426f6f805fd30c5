"""Attend from one group of 128 queries to one section of keys (chapter 23).

Scores are upright here: queries on the partitions, keys along the free axis. The
maximum is a plain reduction and may be the bias of the exponential; what has to be
transposed is p, for its product with v.
"""

import numpy as np

from flashlib.machine.dtypes import BFLOAT16
from flashlib.machine.tile import Tile
from flashlib.programs.blocks import PARTITIONS
from flashlib.programs.cte.masking import mask_and_scale
from flashlib.programs.cte.run import CteRun, Group, load_transposed
from flashlib.programs.cte.sizes import Keys

__all__ = ["LARGE", "add_product", "attend", "empty_state", "exponentials", "join"]

LARGE = 2048


def attend(run: CteRun, g: Group) -> None:
    """Compute one group against one section and store what it has so far."""
    queries = _load_queries(run, g)
    scores, maxima = _scores(run, g, queries)
    correction = _maximum(run, g, maxima)
    p = exponentials(run, g, scores, maxima, correction)
    out = _values(run, g, p)
    join(run, g, out, correction)
    _store(run, g, out)


def _load_queries(run: CteRun, g: Group) -> Tile:
    m, tall = run.m, run.tall["q"]
    rows = slice(g.rows[0], g.rows[-1] + 1)
    source = run.hbm["q"][g.item]
    queries = m.sbuf.alloc((run.s.head_dim, g.height), BFLOAT16)
    part = source[rows] if tall else source[:, rows]
    load_transposed(run, queries, part, tall, "q_load")
    return queries


def _scores(run: CteRun, g: Group, queries: Tile) -> tuple[Tile, Tile]:
    """Multiply tile by tile; mask and scale on the way out of PSUM.

    Scores are ``[rows, keys]``, their maxima ``[rows, tiles]``; a sink is one more.
    """
    m = run.m
    sink = "sink" in run.hbm and g.first
    scores = m.sbuf.alloc((g.height, g.section.size))
    maxima = m.sbuf.alloc((g.height, len(g.tiles) + sink))
    for i, keys in enumerate(g.tiles):
        with m.psum.scope():
            span = slice(keys.at, keys.at + keys.width)
            with m.step("mm1"):
                raw = m.psum.alloc((g.height, keys.width))
                m.isa.nc_matmul(raw, stationary=queries, moving=g.keys[:, span])
            with m.step("mask"):
                top = maxima[:, i : i + 1]
                mask_and_scale(run, g, keys, raw, scores[:, span], top)
    if sink:
        with m.step("sink"):
            value = run.hbm["sink"][g.item : g.item + 1]
            wide = value.broadcast_to((g.height, 1))
            m.isa.dma_copy(maxima[:, len(g.tiles) :], wide)
    return scores, maxima


def _maximum(run: CteRun, g: Group, maxima: Tile) -> Tile | None:
    """Reduce to the negated maximum; from the second section on find the correction."""
    m = run.m
    with m.step("max"):
        if g.first:
            m.isa.tensor_reduce(g.neg_max, "maximum", maxima, 1, negate=True)
            return None
        before = m.sbuf.alloc((g.height, 1))
        m.isa.tensor_copy(before, g.neg_max)
        m.isa.tensor_reduce(g.neg_max, "maximum", maxima, 1, negate=True)
        m.isa.tensor_tensor(g.neg_max, g.neg_max, before, "minimum")
        correction = m.sbuf.alloc((g.height, 1))
        return m.isa.activation(correction, "exp", before, bias=g.neg_max, scale=-1.0)


def exponentials(
    run: CteRun, g: Group, scores: Tile, maxima: Tile, correction: Tile | None
) -> Tile:
    """Exponentiate with the maximum as bias; sums come along from the registers."""
    m = run.m
    sink = maxima.shape[1] > len(g.tiles)
    p = m.sbuf.alloc(scores.shape, BFLOAT16)
    with m.step("exp"):
        sums = m.sbuf.alloc(maxima.shape)
        for i, keys in enumerate(g.tiles):
            span, own = slice(keys.at, keys.at + keys.width), sums[:, i : i + 1]
            m.isa.activation_reduce(
                p[:, span], "exp", scores[:, span], "add", own, bias=g.neg_max
            )
        if sink:
            last = slice(len(g.tiles), len(g.tiles) + 1)
            m.isa.activation(sums[:, last], "exp", maxima[:, last], bias=g.neg_max)
    with m.step("sum"):
        if g.first:
            m.isa.tensor_reduce(g.total, "add", sums, 1)
            return p
        fresh = m.sbuf.alloc((g.height, 1))
        m.isa.tensor_reduce(fresh, "add", sums, 1)
        m.isa.tensor_scalar(
            g.total, g.total, "multiply", correction, op1="add", operand1=fresh
        )
    return p


def _values(run: CteRun, g: Group, p: Tile) -> Tile:
    """Return p V of this section, ``[rows, head_dim]``; large tiles add up in SBUF."""
    m, d = run.m, run.s.head_dim
    out = m.sbuf.alloc((g.height, d))
    large: dict[int, list[Keys]] = {}
    for keys in g.tiles:
        for part in keys.parts():
            if run.s.needed(g.number, part, g.section):
                large.setdefault(part.at // LARGE, []).append(part)
    for i, parts in enumerate(large.values()):
        with m.psum.scope():
            total = m.psum.alloc((g.height, d))
            for part in parts:
                add_product(run, g, p, part, total)
            with m.step("mm2"):
                if i == 0:
                    m.isa.tensor_copy(out, total)
                else:
                    m.isa.tensor_tensor(out, out, total, "add")
    return out


def add_product(run: CteRun, g: Group, p: Tile, part: Keys, total: Tile) -> None:
    """Transpose p of 128 keys and multiply by their values."""
    m = run.m
    with m.sbuf.scope():
        flipped = m.sbuf.alloc((part.width, g.height), BFLOAT16)
        with m.step("transpose"):
            span = slice(part.at, part.at + part.width)
            m.isa.dma_transpose(flipped, p[:, span])
        with m.step("mm2"):
            rows = g.values[: part.width, part.at // PARTITIONS]
            m.isa.nc_matmul(total, stationary=flipped, moving=rows)


def join(run: CteRun, g: Group, out: Tile, correction: Tile | None) -> None:
    """Read the output of earlier sections back, correct it and add it."""
    if correction is None:
        return
    m = run.m
    with m.step("join"), m.sbuf.scope():
        before = m.sbuf.alloc(out.shape)
        m.isa.dma_copy(before, _place(run, g))
        m.isa.tensor_scalar(before, before, "multiply", correction)
        m.isa.tensor_tensor(out, out, before, "add")


def _store(run: CteRun, g: Group, out: Tile) -> None:
    """Write the output in the type of q: normalized in the last section only."""
    m = run.m
    with m.step("store"):
        if g.last:
            m.isa.reciprocal(g.total, g.total)
            m.isa.tensor_scalar(out, out, "multiply", g.total)
        m.isa.dma_copy(_place(run, g), out)


def _place(run: CteRun, g: Group) -> Tile:
    """Rows of this group in the output, ``[rows, head_dim]``."""
    rows = slice(g.rows[0], g.rows[-1] + 1)
    out = run.hbm["out"][g.item]
    return out[rows] if run.tall["out"] else out[:, rows].permute((1, 0))


def empty_state(run: CteRun, groups: int) -> tuple[Tile, Tile]:
    """Columns of maxima and sums, one per group; rows beyond the last stay 0."""
    m = run.m
    with m.step("setup"):
        state = [m.sbuf.alloc((PARTITIONS, groups), np.float32) for _ in range(2)]
        for tile in state:
            m.isa.memset(tile, 0.0)
    return tuple(state)
