"""Turn a page table into block numbers on partitions (chapter 21).

128 blocks are gathered at a time, so pages are cut into resized blocks until 128 of
them fill a fold. Entry e of the table becomes ``e * factor + 0 .. factor - 1``.
"""

import numpy as np

from flashlib.errors import OutOfBoundsError
from flashlib.machine.dtypes import UINT32
from flashlib.machine.machine import Machine
from flashlib.machine.tile import Tile
from flashlib.programs.blocks import PARTITIONS
from flashlib.programs.tkg.run import Core
from flashlib.programs.tkg.sizes import TkgSizes

__all__ = [
    "check_entries",
    "first_blocks",
    "live_entries",
    "load_block_index",
    "resized",
]


def load_block_index(run: Core, first: int, count: int) -> Tile:
    """Return the block numbers of this core's slots, ``[128, count, folds]``.

    Block ``128 * fold + p`` of item i lies at ``[p, i, fold]``.
    """
    m, s = run.m, run.s
    blocks = s.local_slots // s.block_len
    folds = blocks // PARTITIONS
    start = run.first_slot // s.block_len
    with m.step("table"):
        index = m.sbuf.alloc((PARTITIONS, count, folds), UINT32)
        for item in range(count):
            with m.sbuf.scope():
                row = resized(run, run.hbm.table[first + item])
                own = row[:, start : start + blocks].reshape(1, folds, PARTITIONS)
                m.isa.dma_copy(index[:, item], own.permute((0, 2, 1)))
        if run.hardened:
            _clamp(m, index, run.hbm.k_pages.shape[0] - 1)
    return index


def resized(run: Core, entries: Tile) -> Tile:
    """Load one row of the table and number the resized blocks, ``[1, blocks]``."""
    m, factor, n = run.m, run.s.factor, entries.shape[0]
    row = m.sbuf.alloc((1, n, 1), UINT32)
    m.isa.dma_copy(row, entries)
    if factor == 1:
        return row.reshape(1, n)
    out = m.sbuf.alloc((1, n, factor), UINT32)
    first_blocks(m, row, factor)
    parts = m.isa.iota(m.sbuf.alloc((1, 1, factor), UINT32), [[1, factor]])
    first, step = row.broadcast_to(out.shape), parts.broadcast_to(out.shape)
    m.isa.tensor_tensor(out, first, step, "add")
    return out.reshape(1, n * factor)


def first_blocks(m: Machine, pages: Tile, factor: int) -> Tile:
    """Turn numbers of pages into those of their first blocks, in place."""
    times = m.isa.memset(m.sbuf.alloc((1, 1, 1), UINT32), factor)
    return m.isa.tensor_tensor(
        pages, pages, times.broadcast_to(pages.shape), "multiply"
    )


def _clamp(m: Machine, index: Tile, last: int) -> None:
    """Keep stale entries inside the cache: what they fetch is masked anyway."""
    limit = m.isa.memset(m.sbuf.alloc((PARTITIONS, 1, 1), UINT32), last)
    m.isa.tensor_tensor(index, index, limit.broadcast_to(index.shape), "minimum")


def check_entries(
    table: np.ndarray, n_pages: int, s: TkgSizes, live: np.ndarray | None
) -> None:
    """Refuse a page that does not exist; name its item, fold and partition.

    Parameters
    ----------
    table : ndarray
        ``[batch, pages]``.
    live : ndarray of bool, optional
        ``[batch, pages]``: only these entries are looked at; all when None.
    """
    wrong = (table < 0) | (table >= n_pages)
    if live is not None:
        wrong &= live
    if not wrong.any():
        return
    batch, column = (int(i[0]) for i in np.nonzero(wrong))
    block = column * s.factor % (s.local_slots // s.block_len)
    fold, partition = divmod(block, PARTITIONS)
    raise OutOfBoundsError(
        f"active_blocks_table[{batch}, {column}] has {table[batch, column]}, gathered "
        f"for batch {batch} in fold {fold} to partition {partition}; expected 0 to "
        f"{n_pages - 1}; the cache has {n_pages} pages; repair the table and pad it "
        "with 0"
    )


def live_entries(
    s: TkgSizes,
    pos_ids: np.ndarray | None,
    start_pos_ids: np.ndarray | None,
    mask: np.ndarray | None,
) -> np.ndarray:
    """Tell which pages hold a slot that some query attends, ``[batch, pages]``."""
    if mask is not None:
        return _live_by_mask(s, mask)
    slots = np.arange(s.slots)
    live = slots < pos_ids[:, :1]
    if start_pos_ids is not None:
        live &= slots >= start_pos_ids.min(axis=1, keepdims=True)
    return live.reshape(s.batch, -1, s.page).any(axis=2)


def _live_by_mask(s: TkgSizes, mask: np.ndarray) -> np.ndarray:
    """A paged mask lies tile by tile in (fold, offset in block, partition) order."""
    order, first = [], 0
    for _ in range(s.slot_cores):
        for size in s.tiles:
            order.append(s.layout(size).slots(first).T.reshape(-1))
            first += size
    live = np.zeros((s.slots, s.batch), bool)
    live[np.concatenate(order)] = (mask != 0).reshape(s.slots, s.batch, -1).any(axis=2)
    # the last slots come from the active rows, not from the cache
    live[s.slots - s.seq :] = False
    return live.T.reshape(s.batch, -1, s.page).any(axis=2)
