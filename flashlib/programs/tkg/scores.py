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
from flashlib.programs.tkg.run import CoreRun, Window

__all__ = ["load_mask", "step1_scores"]


def load_mask(run: CoreRun, win: Window) -> Tile:
    """Build or load the mask of one tile, ``[128, n, batch, n_heads, seq]`` uint8."""
    m, s = run.m, run.s
    with m.step("mask"):
        mask = m.sbuf.alloc((PARTITIONS, win.n, win.count, s.n_heads, s.seq), UINT8)
        if not run.config.use_pos_id:
            return _given_mask(run, win, mask)
        own = run.positions.window(win.batch * s.seq, win.count * s.seq)
        write_mask(m, mask, win.layout, win.slot, own, clamp_end=run.hardened)
        if win.active:
            active = run.hbm.active_mask[:, win.batch : win.batch + win.count]
            write_active(m, mask, win.layout, active)
        return mask


def _given_mask(run: CoreRun, win: Window, mask: Tile) -> Tile:
    """Load rows of a mask: in slot order when strided, else 128 neighbors a time."""
    rows = run.hbm.mask[win.slots, win.batch : win.batch + win.count]
    if run.s.strided:
        split = rows.reshape(PARTITIONS, win.n, *rows.shape[1:])
    else:
        blocks = rows.reshape(win.n, PARTITIONS, *rows.shape[1:])
        split = blocks.permute((1, 0, 2, 3, 4))
    return run.m.isa.dma_copy(mask, split)


def step1_scores(run: CoreRun, win: Window, mask: Tile, fill: float = -np.inf) -> Tile:
    """Return scores, ``[128, n, batch, n_heads * seq]``; masked cells keep the fill."""
    m, width = run.m, run.s.width
    shape = (PARTITIONS, win.n, win.count, width)
    scores = m.sbuf.alloc(shape)
    with m.step("mm1"):
        m.isa.memset(scores, fill)
    flags = mask.reshape(shape)
    for item in range(win.count):
        with m.sbuf.scope():
            keys = load_keys(run, win, item)
            first = (win.batch + item) * width
            moving = run.queries[:, first : first + width]
            _multiply(run, win, keys, moving, scores[:, :, item], flags[:, :, item])
    return scores


def _multiply(
    run: CoreRun, win: Window, keys: Tile, moving: Tile, scores: Tile, flags: Tile
) -> None:
    """Fill one bank of scores at a time and copy what is attended."""
    m, per_group = run.m, run.s.per_group
    for group in pieces(win.n, per_group):
        with m.step("mm1"), m.psum.scope():
            raw = m.psum.alloc((PARTITIONS, per_group, run.s.width))
            for j in range(per_group):
                block = _block(run, win, keys, group.start + j)
                if block is None:
                    break
                m.isa.nc_matmul(
                    raw[: block.shape[1], j], stationary=block, moving=moving
                )
            wanted = raw[:, : group.stop - group.start]
            m.isa.tensor_copy_predicated(scores[:, group], wanted, flags[:, group])


def _block(run: CoreRun, win: Window, keys: Tile, t: int) -> Tile | None:
    """Columns of the keys that make block t of the scores, None beyond the last.

    The published bound asks whether column t exists, not whether block t does, so a
    strided group always multiplies ``per_group`` blocks. Nobody reads the surplus.
    """
    if not run.s.strided:
        return keys[:, t * PARTITIONS : (t + 1) * PARTITIONS] if t < win.n else None
    count = min(PARTITIONS, (win.size - 1 - t) // win.n + 1)
    if count <= 0:
        return None
    return keys[:, t : t + (count - 1) * win.n + 1 : win.n]
