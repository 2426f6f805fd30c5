"""Multiply keys by queries and keep the scores that the mask lets through (chapter 18).

Step 1 of five. The buffer is filled with -inf for every tile: a masked cell is never
written, so it would keep the score of the tile before.
"""

import numpy as np

from flashlib.machine.dtypes import UINT8
from flashlib.machine.tile import Tile
from flashlib.programs.blocks import PARTITIONS, pieces
from flashlib.programs.masks.build import write_active, write_mask
from flashlib.programs.tkg.keys import load_keys
from flashlib.programs.tkg.run import CoreRun, SlotTile

__all__ = ["load_mask", "step1_scores"]


def load_mask(run: CoreRun, tile: SlotTile) -> Tile:
    """Build or load the mask of one tile, ``[128, n, batch, n_heads, seq]`` uint8."""
    m, s = run.m, run.s
    with m.step("mask"):
        mask = m.sbuf.alloc((PARTITIONS, tile.n, tile.count, s.n_heads, s.seq), UINT8)
        if not run.config.use_pos_id:
            return _given_mask(run, tile, mask)
        own = run.positions.columns(tile.batch * s.seq, tile.count * s.seq)
        write_mask(m, mask, tile.layout, tile.slot, own, clamp_end=run.hardened)
        if tile.active:
            active = run.hbm.active_mask[:, tile.batch : tile.batch + tile.count]
            write_active(m, mask, tile.layout, active)
        return mask


def _given_mask(run: CoreRun, tile: SlotTile, mask: Tile) -> Tile:
    """Load rows of a mask: in slot order when strided, else 128 neighbors a time."""
    rows = run.hbm.mask[tile.slots, tile.batch : tile.batch + tile.count]
    if run.s.strided:
        split = rows.reshape(PARTITIONS, tile.n, *rows.shape[1:])
    else:
        blocks = rows.reshape(tile.n, PARTITIONS, *rows.shape[1:])
        split = blocks.permute((1, 0, 2, 3, 4))
    return run.m.isa.dma_copy(mask, split)


def step1_scores(
    run: CoreRun, tile: SlotTile, mask: Tile, fill: float = -np.inf
) -> Tile:
    """Return scores, ``[128, n, batch, n_heads * seq]``; masked cells keep the fill."""
    m, width = run.m, run.s.width
    shape = (PARTITIONS, tile.n, tile.count, width)
    scores = m.sbuf.alloc(shape)
    with m.step("mm1"):
        m.isa.memset(scores, fill)
    flags = mask.reshape(shape)
    for item in range(tile.count):
        with m.sbuf.scope():
            keys = load_keys(run, tile, item)
            first = (tile.batch + item) * width
            moving = run.queries[:, first : first + width]
            _multiply(run, tile, keys, moving, scores[:, :, item], flags[:, :, item])
    return scores


def _multiply(
    run: CoreRun, tile: SlotTile, keys: Tile, moving: Tile, scores: Tile, flags: Tile
) -> None:
    """Fill one bank of scores at a time and copy what is attended."""
    m, per_group = run.m, run.s.per_group
    for group in pieces(tile.n, per_group):
        with m.step("mm1"), m.psum.scope():
            raw = m.psum.alloc((PARTITIONS, per_group, run.s.width))
            for j in range(per_group):
                block = _block(run, tile, keys, group.start + j)
                if block is None:
                    break
                m.isa.nc_matmul(
                    raw[: block.shape[1], j], stationary=block, moving=moving
                )
            wanted = raw[:, : group.stop - group.start]
            m.isa.tensor_copy_predicated(scores[:, group], wanted, flags[:, group])


def _block(run: CoreRun, tile: SlotTile, keys: Tile, t: int) -> Tile | None:
    """Columns of the keys that make block t of the scores, None beyond the last.

    The published bound asks whether column t exists, not whether block t does, so a
    strided group always multiplies ``per_group`` blocks. Nobody reads the surplus.
    """
    if not run.s.strided:
        return keys[:, t * PARTITIONS : (t + 1) * PARTITIONS] if t < tile.n else None
    count = min(PARTITIONS, (tile.size - 1 - t) // tile.n + 1)
    if count <= 0:
        return None
    return keys[:, t : t + (count - 1) * tile.n + 1 : tile.n]
