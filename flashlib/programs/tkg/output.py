"""Multiply values by probabilities, join tiles and cores, store (chapters 20, 22).

Step 5 of five, and what follows the last tile.
"""

from flashlib.machine.tile import Tile
from flashlib.programs.blocks import PARTITIONS
from flashlib.programs.tkg.cores import exchange
from flashlib.programs.tkg.run import CoreRun, SlotTile, Softmax
from flashlib.programs.tkg.softmax import reciprocals, spread
from flashlib.programs.tkg.values import clean_values, load_values, restore_hits

__all__ = ["finish", "join_batches", "step5_values"]


def step5_values(
    run: CoreRun,
    tile: SlotTile,
    p: Tile,
    mask: Tile,
    factor: Tile | None,
    soft: Softmax,
) -> None:
    """Multiply V by p for each item; normalize at once, or add to what is there."""
    m, s = run.m, run.s
    out = soft.output
    if s.tiled and not tile.first:
        out = m.sbuf.alloc(soft.output.shape)
    flags = mask.reshape(PARTITIONS, tile.n, tile.count, s.width)
    for item in range(tile.count):
        own = slice(item * s.width, (item + 1) * s.width)
        with m.sbuf.scope(), m.psum.scope():
            values = load_values(run, tile, item)
            with m.step("mm2"):
                hits = None
                if run.hardened:
                    hits = m.psum.alloc((s.head_dim, s.width))
                    clean_values(run, values, flags[:, :, item], hits)
                total = m.psum.alloc((s.head_dim, s.width))
                for t in range(tile.n):
                    m.isa.nc_matmul(total, stationary=values[:, t], moving=p[:, t, own])
                _evict(run, out[:, own], total, factor, own)
                if hits is not None:
                    restore_hits(run, out[:, own], hits)
    if s.tiled and not tile.first:
        _accumulate(run, out, soft)


def _evict(
    run: CoreRun, dst: Tile, total: Tile, factor: Tile | None, own: slice
) -> None:
    """Leave PSUM: scaled by 1 / sum, or as it is when the sum is not known yet."""
    if factor is None:
        run.m.isa.tensor_copy(dst, total)
        return
    run.m.isa.tensor_tensor(dst, total, factor[: run.s.head_dim, own], "multiply")


def _accumulate(run: CoreRun, fresh: Tile, soft: Softmax) -> None:
    """Scale the running output by the correction and add the one of this tile."""
    m = run.m
    with m.step("accumulate"), m.sbuf.scope():
        correction = spread(run, soft.running.correction, soft, run.s.head_dim)
        m.isa.tensor_tensor(soft.output, soft.output, correction, "multiply")
        m.isa.tensor_tensor(soft.output, soft.output, fresh, "add")


def finish(run: CoreRun, tile: SlotTile, soft: Softmax) -> None:
    """Normalize after the last tile, add the other core's part, store."""
    m, s, out = run.m, run.s, soft.output
    if s.tiled:
        factor = reciprocals(run, soft.running.total, soft)
        with m.step("recip"):
            m.isa.tensor_tensor(out, out, factor[: s.head_dim], "multiply")
    if s.slots_sharded:
        with m.step("exchange"):
            remote = m.sbuf.alloc(out.shape)
            exchange(run, remote, out)
            if run.core == 0 or run.config.out_in_sb:
                m.isa.tensor_tensor(out, out, remote, "add")
    with m.step("store"):
        if run.hardened:
            # a zero is 0, never -0: without keys, and where small values round to it
            m.isa.tensor_scalar(out, out, "add", 0.0)
        _store(run, out, tile.batch, tile.count)


def _store(run: CoreRun, out: Tile, first: int, count: int) -> None:
    """Keep the output on chip, or write it as ``[batch, n_heads, head_dim, seq]``."""
    m, s = run.m, run.s
    if run.config.out_in_sb:
        own = slice(first * s.width, (first + count) * s.width)
        m.isa.tensor_copy(run.result[:, own], out)
    elif not s.slots_sharded or run.core == 0:
        dst = run.hbm.out[first : first + count].permute((2, 0, 1, 3))
        split = out.reshape(s.head_dim, count, s.n_heads, s.seq)
        m.isa.dma_copy(dst, split)


def join_batches(run: CoreRun) -> None:
    """Give both cores the whole output when each has computed half of the batch."""
    half = run.s.local_batch * run.s.width
    first = run.core * half
    other = half - first
    with run.m.step("exchange"):
        own = run.result[:, first : first + half]
        exchange(run, run.result[:, other : other + half], own)
