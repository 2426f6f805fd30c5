"""Bring keys on chip as [head_dim, slots], from three kinds of cache (chapter 21)."""

import numpy as np

from flashlib.machine.dtypes import BFLOAT16, FLOAT8
from flashlib.machine.pattern import Gather
from flashlib.machine.tile import Tile
from flashlib.programs.blocks import PARTITIONS, pieces
from flashlib.programs.tkg.run import Core, CoreRun, SlotTile

__all__ = [
    "FLIPPED_AT_ONCE",
    "append",
    "fold_index",
    "load_keys",
    "page_rows",
    "transposed_by_dma",
]

FLIPPED_AT_ONCE = 8


def load_keys(run: CoreRun, tile: SlotTile, item: int) -> Tile:
    """Load the keys of one batch item, active rows last.

    Flat keys stay in the order of the slots. Pages come fold by fold: column
    ``f * 128 + p`` holds the slot at partition p, free position f.
    """
    m, batch = run.m, tile.batch + item
    with m.step("k_load"):
        keys = m.sbuf.alloc((run.s.head_dim, tile.size), run.kv)
        if run.s.paged:
            _gather(run, tile, item, keys)
        elif not run.config.tp_k_prior:
            m.isa.dma_copy(keys, run.hbm.k_prior[batch, 0, :, tile.slots])
        elif run.kv == FLOAT8:
            rows = run.hbm.k_prior[batch, 0, tile.slots]
            _flip_rows(run, tile, rows, keys)
        else:
            m.isa.dma_transpose(keys, run.hbm.k_prior[batch, 0, tile.slots])
        if tile.active:
            append(run, tile, batch, keys)
    return keys


def append(run: CoreRun, tile: SlotTile, batch: int, keys: Tile) -> None:
    """Overwrite the last slots with the active keys, on chip only."""
    m, s = run.m, run.s
    own = run.k_active[:, batch * s.seq : (batch + 1) * s.seq]
    if not s.paged:
        m.isa.tensor_copy(keys[:, tile.size - s.seq :], own, engine="scalar")
        return
    blocks = keys.reshape(s.head_dim, tile.n, PARTITIONS)
    for cells in tile.layout.tail(s.seq):
        dst = blocks[:, cells.free, cells.partitions].permute((0, 2, 1))
        m.isa.tensor_copy(dst, own[:, cells.rows], engine="scalar")


def _flip_rows(run: CoreRun, tile: SlotTile, rows: Tile, keys: Tile) -> None:
    """Transpose eight-bit rows: a DMA cannot, so widen and use the array."""
    m, d = run.m, run.s.head_dim
    with m.sbuf.scope():
        wide = m.sbuf.alloc((PARTITIONS, tile.n, d), BFLOAT16)
        m.isa.dma_copy(wide, rows.reshape(tile.n, PARTITIONS, d).permute((1, 0, 2)))
        _flip(run, wide, keys.reshape(d, tile.n, PARTITIONS))


def _flip(run: CoreRun, rows: Tile, blocks: Tile) -> None:
    """Transpose ``rows [128, n, d]`` block by block into ``blocks [d, n, 128]``."""
    m = run.m
    for i, group in enumerate(pieces(rows.shape[1], FLIPPED_AT_ONCE)):
        with m.psum.scope():
            count = group.stop - group.start
            flipped = m.psum.alloc((run.s.head_dim, count, PARTITIONS), rows.dtype)
            for t in range(count):
                m.isa.nc_transpose(
                    flipped[:, t], rows[:, group.start + t], engine="tensor"
                )
            engine = "scalar" if i % 2 else "vector"
            m.isa.tensor_copy(blocks[:, group], flipped, engine=engine)


def _gather(run: CoreRun, tile: SlotTile, item: int, keys: Tile) -> None:
    """Gather 128 blocks at a time and transpose them on the way or on chip."""
    m, d, unit = run.m, run.s.head_dim, run.s.block_len
    pages = run.hbm.k_pages
    blocks = keys.reshape(d, tile.n, PARTITIONS)
    wide = BFLOAT16 if run.kv == FLOAT8 else run.kv
    for fold in range(tile.layout.folds):
        index = fold_index(run, tile, item, fold)
        dst = blocks[:, fold * unit : (fold + 1) * unit]
        if transposed_by_dma(run):
            pattern = [[unit * d, PARTITIONS], [unit * d, 1], [d, unit], [1, d]]
            src = pages.ap(pattern, vector_offset=index, indirect_dim=0)
            m.isa.dma_transpose(dst.reshape(d, 1, unit, PARTITIONS), src)
            continue
        with m.sbuf.scope():
            rows = m.sbuf.alloc((PARTITIONS, unit, d), wide)
            m.isa.dma_copy(rows, page_rows(run, pages, index))
            _flip(run, rows, dst)


def transposed_by_dma(run: CoreRun) -> bool:
    """Whether a gather can transpose: full rows of two bytes, blocks of 8 or more."""
    wide_enough = run.s.block_len >= FLIPPED_AT_ONCE
    return run.s.head_dim == PARTITIONS and run.kv == BFLOAT16 and wide_enough


def fold_index(run: Core, tile: SlotTile, item: int, fold: int) -> Tile:
    """Block numbers of one fold, one per partition."""
    first = tile.offset // (PARTITIONS * run.s.block_len)
    at = first + fold
    return tile.block_index[:, item, at : at + 1]


def page_rows(run: Core, pages: Tile, index: Tile) -> Gather:
    """Pattern that reads one whole block per partition."""
    row = int(np.prod(pages.shape[1:]))
    pattern = [[row, PARTITIONS], [1, row]]
    return pages.ap(pattern, vector_offset=index, indirect_dim=0)
