"""Decode attention over one tile of cached keys in five steps (chapters 16, 17).

Scores are kept sideways: keys on the partitions, query heads on the free axis. Then

1. ``mm1``   scores[key, head] = K q, K stationary, all heads of a group moving
2. ``max``   reduce over blocks, transpose, reduce; clamp; broadcast back
3. ``exp``   p = exp(scores - max), rounded to the type of the inputs
4. ``sum``   p.T @ ones, a matrix product with one column; then 1 / sum
5. ``mm2``   out[d, head] = V.T p, V stationary, scaled on the way out of PSUM

One tile is the whole cache here (up to 8,192 keys), so there is no rescaling yet.
Letters: b key/value heads, c = seq_q * group columns per key/value head, n blocks of
128 keys.
"""

import math
from typing import NamedTuple

import numpy as np

from flashlib.machine.dtypes import FLOAT32_MIN
from flashlib.machine.machine import Machine
from flashlib.machine.spec import NC_V3, Spec
from flashlib.machine.tile import Tile
from flashlib.machine.trace import Trace
from flashlib.programs.blocks import (
    PARTITIONS,
    broadcast_column,
    broadcast_row,
    column_to_row,
    max_over_partitions,
    over_partitions,
    pieces,
    sum_ones_moving,
)
from flashlib.programs.decode_sizes import Sizes, checked_sizes

__all__ = [
    "DecodeResult",
    "decode_tile",
    "load_keys",
    "load_queries",
    "step1_scores",
    "step2_max",
    "step3_exp",
    "step4_sum",
    "step5_values",
    "store",
    "validity",
]


class DecodeResult(NamedTuple):
    """What the program returns.

    ``out`` is ``[seq_q, n_heads, head_dim_v]`` in the type of q.
    """

    out: np.ndarray
    trace: Trace
    machine: Machine


def decode_tile(
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    *,
    scale: float | None = None,
    spec: Spec = NC_V3,
) -> DecodeResult:
    """Attend from every query to every cached key, on the machine.

    Parameters
    ----------
    q : ndarray
        ``[seq_q, n_heads, head_dim]`` float32, float16 or bfloat16.
    k : ndarray
        ``[seq_k, n_kv_heads, head_dim]``.
    v : ndarray
        ``[seq_k, n_kv_heads, head_dim_v]``.
    scale : float, optional
        1 / sqrt(head_dim) unless given.
    spec : Spec

    Returns
    -------
    DecodeResult

    Raises
    ------
    ShapeError, DTypeError
        Before the first instruction.
    CapacityError
        From the machine, when the scores of one tile do not fit in SBUF.

    Examples
    --------
    >>> q = np.ones((1, 2, 4), np.float32)
    >>> k = np.zeros((3, 1, 4), np.float32)
    >>> v = np.array([0, 3, 6], np.float32).reshape(3, 1, 1)
    >>> decode_tile(q, k, v).out.ravel()
    array([3., 3.], dtype=float32)
    """
    sizes = checked_sizes(q, k, v)
    m = Machine(spec)
    q_hbm, k_hbm, v_hbm = m.hbm.put(q), m.hbm.put(k), m.hbm.put(v)
    scale = 1 / math.sqrt(sizes.head_dim) if scale is None else scale

    queries = load_queries(m, q_hbm, scale, sizes)
    mask = validity(m, sizes)
    scores = step1_scores(m, queries, k_hbm, mask, sizes)
    peak = step2_max(m, scores)
    p = step3_exp(m, scores, peak, q_hbm.dtype)
    factor = step4_sum(m, p)
    out = step5_values(m, p, v_hbm, factor, sizes)
    return DecodeResult(store(m, out, q_hbm.shape[:2], sizes), m.trace, m)


def load_queries(m: Machine, q_hbm: Tile, scale: float, s: Sizes) -> Tile:
    """Bring q in as ``[head_dim, b * c]`` and scale it once."""
    with m.step("q_load"):
        split = q_hbm.reshape(s.seq_q, s.n_kv_heads, s.group, s.head_dim)
        raw = m.sbuf.alloc((s.head_dim, s.columns), q_hbm.dtype)
        if m.spec.generation < 3:
            m.isa.dma_copy(raw, split.permute((3, 1, 2, 0)))
        else:
            shape = (s.head_dim, s.n_kv_heads, s.group, s.seq_q)
            m.isa.dma_transpose(raw.reshape(shape), split)
        scaled = m.sbuf.alloc(raw.shape, q_hbm.dtype)
        return m.isa.activation(scaled, "copy", raw, scale=scale)


def validity(m: Machine, s: Sizes) -> Tile:
    """Flag the keys that exist: ``[128, n, b * c]`` of uint8, 1 where index < seq_k."""
    with m.step("mask"):
        index = m.sbuf.alloc((PARTITIONS, s.blocks))
        m.isa.iota(index, [[PARTITIONS, s.blocks]], channel_multiplier=1)
        shape = (PARTITIONS, s.blocks, s.columns)
        wide = index[:, :, None].broadcast_to(shape)
        return m.isa.tensor_scalar(m.sbuf.alloc(shape, np.uint8), wide, "less", s.seq_k)


def step1_scores(
    m: Machine, queries: Tile, k_hbm: Tile, mask: Tile, s: Sizes, fill: float = -np.inf
) -> Tile:
    """Multiply K by the queries of its group; masked cells keep the fill, -inf."""
    shape = (PARTITIONS, s.blocks, s.n_kv_heads, s.width)
    scores = m.sbuf.alloc(shape)
    with m.step("mm1"):
        m.isa.memset(scores, fill)
    mask = mask.reshape(shape)
    for b in range(s.n_kv_heads):
        with m.sbuf.scope():
            keys = load_keys(m, k_hbm[:, b], s)
            moving = queries[:, b * s.width : (b + 1) * s.width]
            for group in pieces(s.blocks, s.per_group):
                with m.step("mm1"), m.psum.scope():
                    raw = m.psum.alloc((PARTITIONS, group.stop - group.start, s.width))
                    for t in range(group.start, group.stop):
                        block = keys[:, t * PARTITIONS : (t + 1) * PARTITIONS]
                        m.isa.nc_matmul(
                            raw[:, t - group.start], stationary=block, moving=moving
                        )
                    m.isa.tensor_copy_predicated(
                        scores[:, group, b], raw, mask[:, group, b]
                    )
    return scores.reshape(PARTITIONS, s.blocks, s.columns)


def load_keys(m: Machine, k_hbm: Tile, s: Sizes) -> Tile:
    """Load one head's keys transposed, ``[head_dim, n * 128]``; missing ones are 0."""
    with m.step("k_load"):
        keys = m.sbuf.alloc((s.head_dim, s.blocks * PARTITIONS), k_hbm.dtype)
        if s.seq_k % PARTITIONS:
            m.isa.memset(keys[:, s.seq_k :], 0.0)
        if m.spec.generation < 3:
            m.isa.dma_copy(keys[:, : s.seq_k], k_hbm.permute((1, 0)))
        else:
            m.isa.dma_transpose(keys[:, : s.seq_k], k_hbm)
        return keys


def step2_max(m: Machine, scores: Tile) -> Tile:
    """Find each column's maximum and lay it on all partitions, ``[128, b * c]``.

    The clamp keeps a column without any key finite: -inf - (-inf) would be NaN.
    """
    columns = scores.shape[2]
    parts = pieces(columns)
    peak = m.sbuf.alloc((PARTITIONS, columns))
    with m.step("max"), m.sbuf.scope():
        lanes = m.sbuf.alloc((PARTITIONS, columns))
        m.isa.tensor_reduce(lanes, "maximum", scores.permute((0, 2, 1)), axis=2)
        tops = m.sbuf.alloc((min(columns, PARTITIONS), len(parts)))
        for i, part in enumerate(parts):
            top = tops[: part.stop - part.start, i : i + 1]
            max_over_partitions(m, lanes[:, part], out=top)
        for i, part in enumerate(parts):
            top = tops[: part.stop - part.start, i : i + 1]
            clamped = m.sbuf.alloc(top.shape)
            m.isa.tensor_scalar(clamped, top, "maximum", FLOAT32_MIN)
            broadcast_column(m, clamped, out=peak[:, part])
    return peak


def step3_exp(m: Machine, scores: Tile, peak: Tile, dtype: np.dtype) -> Tile:
    """Subtract the maximum and exponentiate; p is rounded to the type of the inputs.

    The maximum differs along the free axis, so it cannot be a bias of the scalar
    engine: two instructions, not one.
    """
    with m.step("exp"):
        wide = peak[:, None, :].broadcast_to(scores.shape)
        m.isa.tensor_tensor(scores, scores, wide, "subtract")
        return m.isa.activation(m.sbuf.alloc(scores.shape, dtype), "exp", scores)


def step4_sum(m: Machine, p: Tile) -> Tile:
    """Sum p over all keys by products with ones; return 1 / sum, ``[128, b * c]``."""
    columns = p.shape[2]
    parts = pieces(columns)
    height = min(columns, PARTITIONS)
    with m.step("setup"):
        ones = m.isa.memset(m.sbuf.alloc((PARTITIONS, 1), p.dtype), 1.0)
        sums = m.isa.memset(m.sbuf.alloc((height, len(parts))), 1.0)
    with m.step("sum"):
        for i, part in enumerate(parts):
            column = sums[: part.stop - part.start, i : i + 1]
            sum_ones_moving(m, p[:, :, part], out=column, ones=ones)
    with m.step("recip"):
        m.isa.reciprocal(sums, sums)
        row = m.sbuf.alloc((1, columns))
        for i, part in enumerate(parts):
            column_to_row(m, sums[: part.stop - part.start, i : i + 1], row[:, part])
        return broadcast_row(m, row)


def step5_values(m: Machine, p: Tile, v_hbm: Tile, factor: Tile, s: Sizes) -> Tile:
    """Multiply V by p, head by head, and normalize on the way out of PSUM."""
    out = m.sbuf.alloc((s.head_dim_v, s.columns), p.dtype)
    for b in range(s.n_kv_heads):
        own = slice(b * s.width, (b + 1) * s.width)
        with m.sbuf.scope(), m.psum.scope():
            with m.step("v_load"):
                values = over_partitions(m, v_hbm[:, b])
            with m.step("mm2"):
                total = m.psum.alloc((s.head_dim_v, s.width))
                for t in range(s.blocks):
                    m.isa.nc_matmul(total, stationary=values[:, t], moving=p[:, t, own])
                m.isa.tensor_tensor(
                    out[:, own], total, factor[: s.head_dim_v, own], "multiply"
                )
    return out


def store(m: Machine, out: Tile, outer: tuple[int, int], s: Sizes) -> np.ndarray:
    """Write ``[head_dim_v, b * c]`` back as ``[seq_q, n_heads, head_dim_v]``."""
    with m.step("store"):
        out_hbm = m.hbm.alloc((*outer, s.head_dim_v), out.dtype)
        split = out_hbm.reshape(s.seq_q, s.n_kv_heads, s.group, s.head_dim_v)
        m.isa.dma_copy(split.permute((3, 1, 2, 0)), out)
    return out_hbm.numpy()
