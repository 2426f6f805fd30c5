"""Lay the arrays of a decode call into HBM and name them (chapters 20, 21).

What is not part of a call is None.
"""

from dataclasses import dataclass

import numpy as np

from flashlib.machine.dtypes import BFLOAT16, FLOAT8
from flashlib.machine.machine import Machine
from flashlib.machine.tile import Tile
from flashlib.programs.tkg.config import TkgConfig
from flashlib.programs.tkg.operands import TkgOperands
from flashlib.programs.tkg.sizes import TkgSizes

__all__ = ["HbmArrays", "put_arrays"]


@dataclass(frozen=True, kw_only=True)
class HbmArrays:
    """The arrays of one call in the memory that all cores share.

    Attributes
    ----------
    k_prior, v_prior, v_active, q, k_active, mask, active_mask, sink, inv_freqs : Tile
        As `attention_tkg` was given them; q and k_active unless they are on chip.
    end_ids, start_ids, rope_ids : Tile
        Positions as float32, ``[batch, seq]``.
    table : Tile
        Page numbers, ``[batch, pages]`` uint32.
    k_pages, v_pages : Tile
        The caches as rows of one resized block each.
    out, k_out : Tile
        What the kernel writes.
    """

    k_prior: Tile | None = None
    v_prior: Tile | None = None
    v_active: Tile | None = None
    q: Tile | None = None
    k_active: Tile | None = None
    mask: Tile | None = None
    active_mask: Tile | None = None
    sink: Tile | None = None
    end_ids: Tile | None = None
    start_ids: Tile | None = None
    rope_ids: Tile | None = None
    inv_freqs: Tile | None = None
    table: Tile | None = None
    k_pages: Tile | None = None
    v_pages: Tile | None = None
    out: Tile | None = None
    k_out: Tile | None = None


def put_arrays(m: Machine, x: TkgOperands, s: TkgSizes, config: TkgConfig) -> HbmArrays:
    """Copy what the call needs into HBM and make room for what it returns."""
    k_prior, v_prior = m.hbm.put(x.k_prior), m.hbm.put(x.v_prior)
    found = {"k_prior": k_prior, "v_prior": v_prior, "v_active": m.hbm.put(x.v_active)}
    if not config.qk_in_sb:
        found |= {"q": m.hbm.put(x.q), "k_active": m.hbm.put(x.k_active)}
    if x.sink is not None:
        found["sink"] = m.hbm.put(x.sink)
    found |= _masking(m, x, s, config)
    if config.fuse_rope:
        rope = x.pos_ids if x.rope_pos_ids is None else x.rope_pos_ids
        found["rope_ids"] = m.hbm.put(rope.astype(np.float32))
        found["inv_freqs"] = m.hbm.put(x.inv_freqs)
        found["k_out"] = m.hbm.alloc((s.batch, 1, s.head_dim, s.seq), x.k_prior.dtype)
    if s.paged:
        found["table"] = m.hbm.put(x.table.astype(np.uint32))
        shape = (x.k_prior.shape[0] * s.factor, s.block_len * s.head_dim)
        found |= {"k_pages": k_prior.reshape(shape), "v_pages": v_prior.reshape(shape)}
    dtype = BFLOAT16 if x.q.dtype == FLOAT8 else x.q.dtype
    found["out"] = m.hbm.alloc((s.batch, s.n_heads, s.head_dim, s.seq), dtype)
    return HbmArrays(**found)


def _masking(
    m: Machine, x: TkgOperands, s: TkgSizes, config: TkgConfig
) -> dict[str, Tile]:
    """A whole mask, or positions and the mask among the active tokens."""
    if not config.use_pos_id:
        return {"mask": m.hbm.put(_flags(x.mask))}
    active = x.active_mask
    if active is None:
        earlier = np.triu(np.ones((s.seq, s.seq), np.uint8))
        shape = (s.seq, s.batch, s.n_heads, s.seq)
        active = np.broadcast_to(earlier[:, None, None], shape)
    found = {"active_mask": m.hbm.put(_flags(active))}
    for name, ids in (("end_ids", x.pos_ids), ("start_ids", x.start_pos_ids)):
        if ids is not None:
            found[name] = m.hbm.put(ids.astype(np.float32))
    return found


def _flags(x: np.ndarray) -> np.ndarray:
    """The machine has no boolean type: one byte each."""
    return x.view(np.uint8) if x.dtype == bool else x
