"""Call the decode kernel with arrays in the layout of the book (chapters 18, 19, 20).

The kernel wants queries, new rows and cache in four layouts of their own. Here there
is one sequence and one key/value head, rows come in the order of their tokens, and
the last ``seq`` of them belong to the queries.
"""

import math
from typing import NamedTuple

import numpy as np

from flashlib.machine.trace import Trace
from flashlib.programs.attention_tkg import attention_tkg
from flashlib.programs.blocks import PARTITIONS
from flashlib.programs.tkg.config import TkgConfig

__all__ = ["SlotsResult", "decode_slots"]


class SlotsResult(NamedTuple):
    """``out`` is ``[seq, n_heads, head_dim]`` in the type of q; one trace per core."""

    out: np.ndarray
    traces: tuple[Trace, ...]


def decode_slots(
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    *,
    slots: int | None = None,
    pos: int | None = None,
    start: np.ndarray | None = None,
    mask: np.ndarray | None = None,
    active_mask: np.ndarray | None = None,
    sink: np.ndarray | None = None,
    scale: float | None = None,
    tile: int = 8192,
    strided: bool = True,
    lnc: int = 1,
    hardened: bool = False,
) -> SlotsResult:
    """Attend from ``seq`` new tokens to a flat cache and to each other.

    Parameters
    ----------
    q : ndarray
        ``[seq, n_heads, head_dim]`` float32 or bfloat16.
    k, v : ndarray
        ``[rows, 1, head_dim]``. All but the last ``seq`` rows lie in the slots from 0
        on; the last ones are the active rows, which the kernel puts into the last
        slots.
    slots : int, optional
        Length of the cache, a multiple of 128; the next one that holds the rows
        unless given.
    pos : int, optional
        Cached length, ``rows - seq`` unless given: slots below it are valid, and
        query i sits at ``pos + i``.
    start : ndarray, optional
        ``[seq]`` first slot of the window of each query.
    mask : ndarray, optional
        ``[n_heads, seq, slots]`` bool, instead of ``pos``.
    active_mask : ndarray, optional
        ``[seq (query), seq (key)]`` bool; causal unless given.
    sink : ndarray, optional
        ``[n_heads]`` float32.
    scale : float, optional
        1 / sqrt(head_dim) unless given.
    tile, strided, lnc, hardened
        As in `TkgConfig` and `attention_tkg`.

    Returns
    -------
    SlotsResult

    Raises
    ------
    ShapeError, DTypeError
        From `attention_tkg`.

    Examples
    --------
    >>> q = np.ones((1, 2, 4), np.float32)
    >>> k = np.zeros((3, 1, 4), np.float32)
    >>> v = np.repeat(np.float32([0, 3, 6]), 4).reshape(3, 1, 4)
    >>> decode_slots(q, k, v).out[0, :, 0]
    array([3., 3.], dtype=float32)
    """
    seq, n_heads, d = q.shape
    cached = len(k) - seq
    slots = slots or math.ceil(len(k) / PARTITIONS) * PARTITIONS
    scale = d**-0.5 if scale is None else scale
    queries = (q * np.asarray(scale, q.dtype)).transpose(2, 1, 0).reshape(d, -1)
    config = _config(slots, tile, strided, mask is None)
    masking = {"mask": _columns_last(mask, n_heads)}
    if mask is None:
        own = (cached if pos is None else pos) + np.arange(seq)[None]
        first = None if start is None else np.asarray(start)[None]
        active = _columns_last(active_mask, n_heads)
        masking = {"pos_ids": own, "start_pos_ids": first, "active_mask": active}
    sink = None if sink is None else np.asarray(sink, np.float32)[:, None]
    result = attention_tkg(
        queries,
        k[cached:, 0].T,
        v[None, None, cached:, 0],
        _in_slots(k[:cached], slots),
        _in_slots(v[:cached], slots),
        config=config,
        sink=sink,
        lnc=lnc,
        hardened=hardened,
        **masking,
    )
    return SlotsResult(result.out[0].transpose(2, 0, 1), result.traces)


def _config(slots: int, tile: int, strided: bool, use_pos_id: bool) -> TkgConfig:
    """K row by row as the book keeps it, queries on chip from the start."""
    return TkgConfig(
        curr_sprior=slots,
        full_sprior=slots,
        tp_k_prior=True,
        strided_mm1=strided,
        use_pos_id=use_pos_id,
        qk_in_sb=True,
        fa_tile_s_prior=tile,
    )


def _in_slots(x: np.ndarray, slots: int) -> np.ndarray:
    """Lay rows into the slots from 0 on, ``[1, 1, slots, d]``; the rest is 0."""
    out = np.zeros((1, 1, slots, x.shape[-1]), x.dtype)
    out[0, 0, : len(x)] = x[:, 0]
    return out


def _columns_last(mask: np.ndarray | None, n_heads: int) -> np.ndarray | None:
    """Turn ``[.., queries, keys]`` into ``[keys, 1, n_heads, queries]``."""
    if mask is None:
        return None
    seq, keys = np.shape(mask)[-2:]
    wide = np.broadcast_to(mask, (n_heads, seq, keys))
    return np.ascontiguousarray(wide.transpose(2, 0, 1)[:, None])
