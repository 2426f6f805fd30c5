"""Call the decode kernel with plain rows (chapters 18, 19, 20, 21, 22, 23).

The kernel wants queries, new rows and each kind of cache in a shape of its own. Here
keys and values come as rows in the order of their slots, the last ``seq`` of which
belong to the queries, and this module lays them out.
"""

import math
from typing import NamedTuple

import numpy as np

from flashlib.errors import ArgumentError
from flashlib.machine.trace import Trace
from flashlib.programs.attention_tkg import TkgResult, attention_tkg
from flashlib.programs.blocks import PARTITIONS
from flashlib.programs.tkg.config import TkgConfig

__all__ = [
    "CACHES",
    "SPARE",
    "SlotsResult",
    "cache_arguments",
    "decode_cached",
    "decode_slots",
    "to_pages",
]

CACHES = ("rows", "columns", "pages")
#: Pages that the pool has beyond those of the batch.
SPARE = 3


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
    scale: float | None = None,
    **how: object,
) -> SlotsResult:
    """Attend in the layout of the book: one sequence, one key/value head.

    Parameters
    ----------
    q : ndarray
        ``[seq, n_heads, head_dim]`` float32 or bfloat16.
    k, v : ndarray
        ``[rows, 1, head_dim]``. All but the last ``seq`` rows lie in the slots from 0
        on; the last ones are the active rows.
    slots : int, optional
        Length of the cache, a multiple of 128; the next one that holds the rows
        unless given.
    pos : int, optional
        Cached length, ``rows - seq`` unless given: slots below it are valid, and
        query i sits at ``pos + i``.
    scale : float, optional
        1 / sqrt(head_dim) unless given.
    **how
        As in `cache_arguments`.

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
    seq, _, d = q.shape
    slots = slots or math.ceil(len(k) / PARTITIONS) * PARTITIONS
    scale = d**-0.5 if scale is None else scale
    queries = (q * np.asarray(scale, q.dtype)).transpose(1, 0, 2)[None]
    keys, values = (_in_slots(x, seq, slots) for x in (k, v))
    pos = len(k) - seq if pos is None else pos
    result = decode_cached(queries, keys, values, pos=pos, **how)
    return SlotsResult(result.out[0].transpose(2, 0, 1), result.traces)


def decode_cached(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, **how: object
) -> TkgResult:
    """Run the decode kernel; arguments as in `cache_arguments`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> q = rng.normal(size=(1, 1, 1, 4)).astype(np.float32)
    >>> k, v = rng.normal(size=(2, 1, 2048, 4)).astype(np.float32)
    >>> flat = decode_cached(q, k, v).out
    >>> paged = decode_cached(q, k, v, cache="pages", block_len=16).out
    >>> bool(np.abs(flat - paged).max() < 1e-6)
    True
    """
    args, options = cache_arguments(q, k, v, **how)
    return attention_tkg(*args, **options)


def cache_arguments(
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    *,
    cache: str = "rows",
    block_len: int = 16,
    seed: int = 0,
    strided: bool = True,
    pos: int | None = None,
    start: np.ndarray | None = None,
    mask: np.ndarray | None = None,
    active_mask: np.ndarray | None = None,
    bucket: int | None = None,
    tile: int = 8192,
    sink: np.ndarray | None = None,
    out_in_sb: bool = False,
    lnc: int = 1,
    hardened: bool = False,
) -> tuple[tuple[np.ndarray, ...], dict[str, object]]:
    """Lay one call out; return positional and keyword arguments of `attention_tkg`.

    Parameters
    ----------
    q : ndarray
        ``[batch, n_heads, seq, head_dim]``, already scaled.
    k, v : ndarray
        ``[batch, slots, head_dim]`` in the order of the slots; the last ``seq`` of
        them are the active rows.
    cache : str
        "rows" (K as it comes), "columns" (K stored transposed) or "pages".
    block_len : int
        Slots of a page.
    seed : int
        Order in which the pages lie in their pool.
    strided : bool
        Neighboring slots on one partition; flat caches only.
    pos : int, optional
        Valid slots in front; all but the active ones unless given.
    start : ndarray, optional
        ``[batch, seq]`` first slot of the window of each query; ``[seq]`` for one
        sequence.
    mask : ndarray, optional
        What broadcasts to ``[batch, n_heads, seq, slots]`` bool, instead of positions.
    active_mask : ndarray, optional
        What broadcasts to ``[batch, n_heads, seq (query), seq (key)]`` bool; causal
        unless given.
    bucket : int, optional
        Slots that a flat cache has; as many as are processed unless given.
    tile : int
        Slots of a tile.
    sink : ndarray, optional
        ``[n_heads]`` float32.
    out_in_sb, lnc, hardened
        As in `TkgConfig` and `attention_tkg`.

    Raises
    ------
    ArgumentError
        For a cache of another name.
    """
    batch, n_heads, seq, d = q.shape
    slots, cached = k.shape[1], k.shape[1] - seq
    config = TkgConfig(
        curr_sprior=slots,
        full_sprior=bucket or slots,
        tp_k_prior=cache != "columns",
        strided_mm1=strided and cache != "pages",
        use_pos_id=mask is None,
        qk_in_sb=True,
        out_in_sb=out_in_sb,
        fa_tile_s_prior=tile,
        block_len=block_len if cache == "pages" else 0,
    )
    pools, table = _cache(cache, k, v, config, seed)
    options = {"config": config, "active_blocks_table": table, "lnc": lnc}
    options |= {"hardened": hardened, "sink": _column(sink)}
    if mask is None:
        own = (cached if pos is None else pos) + np.arange(seq)
        options["pos_ids"] = np.tile(own, (batch, 1))
        options["start_pos_ids"] = None if start is None else np.atleast_2d(start)
        options["active_mask"] = _keys_first(active_mask, batch, n_heads)
    else:
        options["mask"] = _keys_first(mask, batch, n_heads)
    active = k[:, cached:].transpose(2, 0, 1).reshape(d, -1)
    moving = q.transpose(3, 0, 1, 2).reshape(d, -1)
    return (moving, active, v[:, None, cached:], *pools), options


def _column(sink: np.ndarray | None) -> np.ndarray | None:
    return None if sink is None else np.asarray(sink, np.float32)[:, None]


def _keys_first(mask: np.ndarray | None, batch: int, n_heads: int) -> np.ndarray | None:
    """Turn ``[.., queries, keys]`` into ``[keys, batch, n_heads, queries]``."""
    if mask is None:
        return None
    wide = np.broadcast_to(mask, (batch, n_heads, *np.shape(mask)[-2:]))
    return np.ascontiguousarray(wide.transpose(3, 0, 1, 2))


def _cache(
    cache: str, k: np.ndarray, v: np.ndarray, config: TkgConfig, seed: int
) -> tuple[list[np.ndarray], np.ndarray | None]:
    """Lay keys and values out; return them and the page table, if there is one."""
    if cache not in CACHES:
        raise ArgumentError(
            f"cache has {cache!r}; expected one of {', '.join(CACHES)}; keys lie in "
            "rows, in columns or in pages; name one of these"
        )
    if cache == "pages":
        table, pools = to_pages((k, v), config.block_len, seed)
        return pools, table
    keys, values = (_in_bucket(x, config.full_sprior) for x in (k, v))
    if cache == "columns":
        keys = np.ascontiguousarray(keys.transpose(0, 1, 3, 2))
    return [keys, values], None


def to_pages(
    rows: tuple[np.ndarray, ...], block_len: int, seed: int = 0
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Scatter rows over a pool of pages in a random order.

    Returns
    -------
    table : ndarray
        ``[batch, pages]`` uint32.
    pools : list of ndarray
        ``[num_blocks, block_len, head_dim]``, one for each of ``rows``.

    Examples
    --------
    >>> rows = np.arange(8).reshape(1, 8, 1)
    >>> table, (pool,) = to_pages((rows,), 4, seed=1)
    >>> pool[table[0]].ravel().tolist()
    [0, 1, 2, 3, 4, 5, 6, 7]
    """
    batch, slots, d = rows[0].shape
    pages = slots // block_len
    order = np.random.default_rng(seed).permutation(batch * pages + SPARE)
    table = order[: batch * pages].reshape(batch, pages).astype(np.uint32)
    pools = []
    for x in rows:
        pool = np.zeros((len(order), block_len, d), x.dtype)
        pool[table] = x.reshape(batch, pages, block_len, d)
        pools.append(pool)
    return table, pools


def _in_slots(x: np.ndarray, seq: int, slots: int) -> np.ndarray:
    """Lay rows into the slots from 0 on, the last ``seq`` of them into the last slots.

    What lies between is loaded and masked: 0, for NaN times 0 is NaN.
    """
    out = np.zeros((1, slots, x.shape[-1]), x.dtype)
    out[0, : len(x) - seq] = x[:-seq, 0]
    out[0, slots - seq :] = x[-seq:, 0]
    return out


def _in_bucket(x: np.ndarray, bucket: int) -> np.ndarray:
    """Put rows into a longer cache; what lies behind them is never to be read."""
    batch, slots, d = x.shape
    out = np.full((batch, 1, bucket, d), np.nan, x.dtype)
    out[:, 0, :slots] = x
    return out
