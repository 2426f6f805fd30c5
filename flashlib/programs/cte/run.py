"""Hold what one core of a prefill run shares between its steps (chapter 23)."""

from dataclasses import dataclass, field

import numpy as np

from flashlib.machine.dtypes import BFLOAT16
from flashlib.machine.machine import Machine
from flashlib.machine.tile import Tile
from flashlib.programs.blocks import PARTITIONS
from flashlib.programs.cte.sizes import CteSizes, Keys, Section

__all__ = ["CteRun", "Group", "load_rows", "load_section", "load_transposed"]


@dataclass(frozen=True)
class CteRun:
    """One core under way; ``hbm`` holds the arrays of the call by name."""

    m: Machine
    s: CteSizes
    scale: float
    hbm: dict[str, Tile]
    io: np.dtype
    prior_used: int
    tall: dict[str, bool]

    def kv_item(self, item: int) -> int:
        """Key/value row of a batch item."""
        return item // (self.s.batch // self.s.batch_kv)


@dataclass(frozen=True)
class Group:
    """One group of queries in one section.

    ``neg_max`` and ``total`` are this group's columns of the running state. ``bounds``
    keeps the lowest and highest keys of the rows, of the prefix and of the call, once
    a tile has asked for them.
    """

    item: int
    number: int
    rows: range
    section: Section
    tiles: list[Keys]
    first: bool
    last: bool
    keys: Tile
    values: Tile
    neg_max: Tile
    total: Tile
    bounds: dict[bool, tuple[Tile, Tile]] = field(default_factory=dict)

    @property
    def height(self) -> int:
        """Rows of this group, at most 128."""
        return len(self.rows)


def load_transposed(
    run: CteRun, dst: Tile, source: Tile, tall: bool, step: str
) -> None:
    """Bring ``source`` in as ``dst [head_dim, n]`` bfloat16.

    ``tall`` says that it lies as ``[n, head_dim]``: rows are cast on the way in and
    transposed on chip, 128 at a time.
    """
    m = run.m
    with m.step(step):
        if not tall:
            m.isa.dma_copy(dst, source)
            return
        for first in range(0, source.shape[0], PARTITIONS):
            stop = min(first + PARTITIONS, source.shape[0])
            if source.dtype == BFLOAT16:
                m.isa.dma_transpose(dst[:, first:stop], source[first:stop])
                continue
            with m.sbuf.scope():
                rows = m.sbuf.alloc((stop - first, run.s.head_dim), BFLOAT16)
                m.isa.dma_copy(rows, source[first:stop])
                m.isa.dma_transpose(dst[:, first:stop], rows)


def load_rows(run: CteRun, dst: Tile, source: Tile) -> None:
    """Bring rows in so that row ``128 t + p`` lies at ``dst[p, t]``."""
    m = run.m
    full, rest = divmod(source.shape[0], PARTITIONS)
    d = run.s.head_dim
    if full:
        whole = (
            source[: full * PARTITIONS].reshape(full, PARTITIONS, d).permute((1, 0, 2))
        )
        m.isa.dma_copy(dst[:, :full], whole)
    if rest:
        m.isa.dma_copy(dst[:rest, full], source[full * PARTITIONS :])


def load_section(run: CteRun, item: int, section: Section) -> tuple[Tile, Tile]:
    """Load keys ``[head_dim, n]`` and values ``[128, n / 128, head_dim]``.

    Rows of the prefix that only fill its last tile are zeros.
    """
    m, s, kv = run.m, run.s, run.kv_item(item)
    blocks = -(-section.size // PARTITIONS)
    keys = m.sbuf.alloc((s.head_dim, section.size), BFLOAT16)
    values = m.sbuf.alloc((PARTITIONS, blocks, s.head_dim), BFLOAT16)
    for name, first, size, base in _sources(s, section):
        stop = min(first + section.size, size)
        start = base - section.first + first
        stop = min(stop, first + section.size - start)
        cut = slice(first, stop)
        dst = keys[:, start : start + stop - first]
        source = run.hbm[f"k{name}"][kv]
        tall = run.tall["k"]
        part = source[cut] if tall else source[:, cut]
        load_transposed(run, dst, part, tall, "k_load")
        with m.step("v_load"):
            into = values[:, start // PARTITIONS :]
            load_rows(run, into, run.hbm[f"v{name}"][kv, cut])
    _fill(run, section, keys, values)
    return keys, values


def _sources(s: CteSizes, section: Section) -> list[tuple[str, int, int, int]]:
    """Arrays that a section reads: suffix, first row, length, start in the whole."""
    out = []
    if section.first < s.prior:
        out.append(("_prior", section.first, s.prior, 0))
    if section.stop > s.prior_padded:
        first = max(0, section.first - s.prior_padded)
        out.append(("", first, s.seq_k, s.prior_padded))
    return out


def _fill(run: CteRun, section: Section, keys: Tile, values: Tile) -> None:
    """Zero the padding behind the prefix."""
    m, s = run.m, run.s
    first = max(s.prior, section.first) - section.first
    stop = min(s.prior_padded, section.stop) - section.first
    if first >= stop:
        return
    with m.step("k_load"):
        m.isa.memset(keys[:, first:stop], 0.0)
    with m.step("v_load"), m.sbuf.scope():
        block, row = divmod(first, PARTITIONS)
        zeros = m.isa.memset(m.sbuf.alloc((PARTITIONS, run.s.head_dim), BFLOAT16), 0.0)
        if row:
            # a dma, for it may start at any partition
            m.isa.dma_copy(values[row:, block], zeros[row:])
            block += 1
        if block < stop // PARTITIONS:
            m.isa.memset(values[:, block : stop // PARTITIONS], 0.0)
