"""Run mask generation on a core: one tile on chip, or a cache into HBM (chapter 18)."""

from dataclasses import dataclass

import numpy as np

from flashlib.machine.machine import Machine
from flashlib.machine.tile import Tile
from flashlib.programs.blocks import PARTITIONS
from flashlib.programs.masks.build import (
    Positions,
    load_positions,
    write_active,
    write_mask,
)
from flashlib.programs.slot_layout import SlotLayout
from flashlib.programs.tkg.sizes import TkgSizes

__all__ = ["BLOCKS_AT_ONCE", "MaskRun", "mask_in_hbm", "mask_in_sbuf"]

BLOCKS_AT_ONCE = 64


@dataclass(frozen=True)
class MaskRun:
    """One core under way; ``hbm`` holds positions and the active mask by name."""

    m: Machine
    s: TkgSizes
    hbm: dict[str, Tile]
    dtype: np.dtype
    hardened: bool

    @property
    def items(self) -> range:
        """Batch items of this core."""
        first = self.m.core * self.s.local_batch if self.s.batch_sharded else 0
        return range(first, first + self.s.local_batch)

    @property
    def share(self) -> int:
        """Which part of the slots is this core's."""
        return self.m.core if self.s.slots_sharded else 0

    def positions(self) -> Positions:
        """Load ends and starts of all items to all partitions."""
        with self.m.step("setup"):
            tiles = [
                load_positions(self.m, self.hbm[name]) if name in self.hbm else None
                for name in ("end", "start")
            ]
        return Positions(*tiles)

    def fill(
        self, dst: Tile, layout: SlotLayout, first: int, positions: Positions
    ) -> None:
        """Write validity or windows for the items of ``dst``."""
        write_mask(self.m, dst, layout, first, positions, clamp_end=self.hardened)


def mask_in_sbuf(run: MaskRun, offset: int, tile: int) -> np.ndarray:
    """Leave the mask of a tile on chip, ``[128, n, items, n_heads, seq]``."""
    m, s, items = run.m, run.s, run.items
    positions = run.positions().columns(items.start * s.seq, len(items) * s.seq)
    layout = s.layout(tile)
    mask = m.sbuf.alloc((PARTITIONS, layout.n, len(items), s.n_heads, s.seq), run.dtype)
    with m.step("mask"):
        run.fill(mask, layout, run.share * s.local_slots + offset, positions)
        if "active" in run.hbm:
            active = run.hbm["active"][:, items.start : items.stop]
            write_active(m, mask, layout, active)
    return mask.numpy()


def mask_in_hbm(run: MaskRun, out: Tile) -> None:
    """Write this core's part of ``out [slots, batch, n_heads, seq]``.

    Row ``f * 128 + p`` belongs to partition p and free position f. A flat cache is
    strided over all slots here, also when two cores share them: core 1 takes the
    second half of the free positions, not of the slots.
    """
    m, s = run.m, run.s
    positions = run.positions()
    n = s.local_slots // PARTITIONS
    start = run.share * n
    rows = out.reshape(s.slots // PARTITIONS, PARTITIONS, s.batch, s.n_heads, s.seq)
    step = BLOCKS_AT_ONCE
    if s.paged:
        step = max(1, BLOCKS_AT_ONCE // s.block_len) * s.block_len
    for first in range(start, start + n, step):
        stop = min(first + step, start + n)
        for item in run.items:
            with m.sbuf.scope(), m.step("mask"):
                mask = _part(run, first, stop, item, positions)
                dst = rows[first:stop, :, item : item + 1]
                m.isa.dma_copy(dst.permute((1, 0, 2, 3, 4)), mask)


def _part(run: MaskRun, first: int, stop: int, item: int, positions: Positions) -> Tile:
    """Mask of free positions first to stop for one batch item."""
    m, s = run.m, run.s
    own = positions.columns(item * s.seq, s.seq)
    n, total = stop - first, s.slots // PARTITIONS
    mask = m.sbuf.alloc((PARTITIONS, n, 1, s.n_heads, s.seq), run.dtype)
    if s.paged:
        layout = SlotLayout(n, s.block_len)
        run.fill(mask, layout, first * PARTITIONS, own)
        if "active" in run.hbm and stop == total:
            write_active(m, mask, layout, run.hbm["active"][:, item : item + 1])
        return mask
    run.fill(mask, SlotLayout(n, n, stride=total), first, own)
    if "active" in run.hbm:
        for row in range(s.seq):
            p, f = divmod(s.slots - s.seq + row, total)
            if first <= f < stop:
                src = run.hbm["active"][row, item : item + 1]
                m.isa.dma_copy(mask[p : p + 1, f - first], src)
    return mask
