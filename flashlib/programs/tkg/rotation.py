"""Rotate queries and active keys by their positions, on chip (chapter 20).

The sine of the scalar engine is right on [-pi, pi] only. Angles are brought there
first: ``x mod y = x - y * round(x / y - 1/2)``, rounded by a cast to int32.
"""

import math

import numpy as np

from flashlib.machine.tile import Tile
from flashlib.programs.tkg.run import Core

__all__ = ["TWO_PI", "load_and_rotate", "load_queries"]

TWO_PI = 2 * math.pi


def load_and_rotate(core: Core, queries: Tile, k_active: Tile, positions: Tile) -> Tile:
    """Rotate and scale all columns of q in place; return the rotated active k."""
    m, s = core.m, core.s
    with m.step("rope"):
        cos, sin = _tables(core, positions)
        heads = (s.head_dim, s.batch, s.n_heads, s.seq)
        one = (s.head_dim, s.batch, 1, s.seq)
        rotated = m.sbuf.alloc(queries.shape)
        _rotate(
            core,
            rotated.reshape(heads),
            queries.reshape(heads),
            cos.reshape(one).broadcast_to(heads),
            sin.reshape(one).broadcast_to(heads),
        )
        # in place: the unrotated copy on chip is not needed any more
        scale = 1 / math.sqrt(s.head_dim)
        m.isa.activation(queries, "copy", rotated, scale=scale)
        keys = m.sbuf.alloc(k_active.shape, core.kv)
        _rotate(core, keys, k_active, cos, sin)
    if core.last_share and not core.config.k_out_in_sb:
        with m.step("store"):
            split = keys.reshape(s.head_dim, s.batch, s.seq)
            dst = core.hbm.k_out[:, 0].permute((1, 0, 2))
            m.isa.dma_copy(dst, split)
    return keys


def load_queries(core: Core) -> tuple[Tile, Tile]:
    """Bring q ``[batch, n_heads, seq, d]`` and the active k in, transposed."""
    with core.m.step("q_load"):
        return _transposed(core, core.hbm.q), _transposed(core, core.hbm.k_active)


def _transposed(core: Core, source: Tile) -> Tile:
    rows = source.reshape(-1, core.s.head_dim)
    out = core.m.sbuf.alloc(rows.shape[::-1], rows.dtype)
    return core.m.isa.dma_transpose(out, rows)


def _tables(core: Core, positions: Tile) -> tuple[Tile, Tile]:
    """Cosine and signed sine of every angle, ``[head_dim, batch * seq]``.

    The sine is negative on the first half: out = x * cos + swapped(x) * sin.
    """
    m, half = core.m, core.s.head_dim // 2
    n = core.s.batch * core.s.seq
    frequencies = m.isa.dma_copy(m.sbuf.alloc((half, 1)), core.hbm.inv_freqs)
    angles = m.sbuf.alloc((half, n))
    m.isa.tensor_scalar(angles, positions[:half], "multiply", frequencies)
    cos, sin = m.sbuf.alloc((2 * half, n)), m.sbuf.alloc((2 * half, n))
    for table, shift in ((cos, 1.5 * math.pi), (sin, math.pi)):
        reduced = _reduced(core, angles, shift)
        m.isa.activation(table[:half], "sin", reduced)
        m.isa.tensor_copy(table[half:], table[:half])
    m.isa.tensor_scalar(sin[:half], sin[:half], "multiply", -1.0)
    return cos, sin


def _reduced(core: Core, angles: Tile, shift: float) -> Tile:
    """Return ``((angles + shift) mod 2 pi) - pi``."""
    m = core.m
    moved = m.sbuf.alloc(angles.shape)
    m.isa.tensor_scalar(moved, angles, "add", shift)
    turns = m.sbuf.alloc(angles.shape, np.int32)
    m.isa.tensor_scalar(turns, moved, "divide", TWO_PI, op1="subtract", operand1=0.5)
    m.isa.scalar_tensor_tensor(moved, turns, "multiply", -TWO_PI, "add", moved)
    return m.isa.tensor_scalar(moved, moved, "subtract", math.pi)


def _rotate(core: Core, dst: Tile, x: Tile, cos: Tile, sin: Tile) -> None:
    """Write x * cos + swapped(x) * sin; the halves change places by two copies."""
    m, half = core.m, core.s.head_dim // 2
    with m.sbuf.scope():
        swapped = m.sbuf.alloc(x.shape)
        m.isa.tensor_copy(swapped[:half], x[half:])
        m.isa.tensor_copy(swapped[half:], x[:half])
        m.isa.tensor_tensor(swapped, swapped, sin, "multiply")
        straight = m.sbuf.alloc(x.shape)
        m.isa.tensor_tensor(straight, x, cos, "multiply")
        m.isa.tensor_tensor(dst, straight, swapped, "add")
