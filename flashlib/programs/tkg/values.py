"""Bring values on chip as [128, n, head_dim], laid out like the keys (chapter 21)."""

import numpy as np

from flashlib.machine.dtypes import UINT8
from flashlib.machine.tile import Tile
from flashlib.programs.blocks import PARTITIONS, pieces
from flashlib.programs.slot_layout import SlotLayout
from flashlib.programs.tkg.keys import fold_index, page_rows
from flashlib.programs.tkg.run import Core, SlotTile
from flashlib.programs.tkg.sizes import CLEANED_BLOCKS

__all__ = ["clean_values", "in_lanes", "load_values", "restore_hits"]


def load_values(run: Core, tile: SlotTile, item: int) -> Tile:
    """Load the values of one batch item, active rows in the last slots.

    Strided slots of one partition are neighbors in the cache, so a partition is
    filled by one long run; sequential ones come row by row.
    """
    m, s, d = run.m, run.s, run.s.head_dim
    batch, layout = tile.batch + item, tile.layout
    with m.step("v_load"):
        values = m.sbuf.alloc((PARTITIONS, tile.n, d), run.kv)
        if s.paged:
            for fold in range(layout.folds):
                part = values[:, fold * layout.unit : (fold + 1) * layout.unit]
                index = fold_index(run, tile, item, fold)
                m.isa.dma_copy(part, page_rows(run, run.hbm.v_pages, index))
        else:
            rows = run.hbm.v_prior[batch, 0, tile.slots]
            shape = (PARTITIONS, layout.folds, layout.unit, d)
            m.isa.dma_copy(values.reshape(shape), in_lanes(rows, layout))
        if tile.active:
            for cells in layout.tail(s.seq):
                rows = run.hbm.v_active[batch, 0, cells.rows]
                dst = values[cells.partitions, cells.free]
                m.isa.dma_copy(dst, rows.reshape(*cells.shape, d))
    return values


def in_lanes(rows: Tile, layout: SlotLayout) -> Tile:
    """See rows in the order of their slots as ``[128, folds, unit, head_dim]``."""
    folded = rows.reshape(layout.folds, PARTITIONS, layout.unit, rows.shape[1])
    return folded.permute((1, 0, 2, 3))


def clean_values(run: Core, values: Tile, mask: Tile, hits: Tile) -> None:
    """Replace values that are not finite, or masked for all, by 0 (hardened only).

    0 times NaN is NaN, so a masked row must not reach the product. What is not
    finite but attended is counted in ``hits [head_dim, width]``: such results become
    NaN again in :func:`restore_hits`.

    Parameters
    ----------
    values : Tile
        ``[128, n, head_dim]``, changed in place.
    mask : Tile
        ``[128, n, width]`` of one batch item.
    """
    m = run.m
    for chunk in pieces(values.shape[1], CLEANED_BLOCKS):
        with m.sbuf.scope():
            part, flags = values[:, chunk], mask[:, chunk]
            broken = _broken(run, part)
            attended = m.sbuf.alloc(flags.shape, run.io)
            m.isa.tensor_copy(attended, flags)
            for t in range(part.shape[1]):
                m.isa.nc_matmul(hits, stationary=broken[:, t], moving=attended[:, t])
            dead = _dead(run, flags)
            drop = m.sbuf.alloc(part.shape, UINT8)
            wide = dead[:, :, None].broadcast_to(part.shape)
            m.isa.tensor_tensor(drop, broken, wide, "maximum")
            zeros = m.isa.memset(m.sbuf.alloc(part.shape, run.kv), 0.0)
            m.isa.tensor_copy_predicated(part, zeros, drop)


def _broken(run: Core, part: Tile) -> Tile:
    """Flag what is not finite: x - x is 0 for finite x only."""
    m = run.m
    difference = m.sbuf.alloc(part.shape)
    m.isa.tensor_tensor(difference, part, part, "subtract")
    flags = m.sbuf.alloc(part.shape, run.io)
    return m.isa.tensor_scalar(flags, difference, "not_equal", 0.0)


def _dead(run: Core, flags: Tile) -> Tile:
    """Flag slots that no query of the item attends, ``[128, n]``."""
    m = run.m
    alive = m.sbuf.alloc(flags.shape[:2], UINT8)
    m.isa.tensor_reduce(alive, "maximum", flags, axis=2)
    dead = m.sbuf.alloc(alive.shape, UINT8)
    return m.isa.tensor_scalar(dead, alive, "equal", 0.0)


def restore_hits(run: Core, out: Tile, hits: Tile) -> None:
    """Write NaN where a value that is not finite was attended."""
    m = run.m
    with m.sbuf.scope():
        flags = m.sbuf.alloc(out.shape, UINT8)
        m.isa.tensor_scalar(flags, hits, "greater", 0.0)
        nan = m.isa.memset(m.sbuf.alloc(out.shape, out.dtype), np.nan)
        m.isa.tensor_copy_predicated(out, nan, flags)
