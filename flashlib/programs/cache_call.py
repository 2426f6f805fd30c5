"""Call the decode kernel with one cache in every layout (chapters 21, 22, 23).

The kernel wants each kind of cache in a shape of its own. Here keys and values come
as plain rows in the order of their slots, and this module lays them out.
"""

from collections.abc import Mapping

import numpy as np

from flashlib.errors import ArgumentError
from flashlib.programs.attention_tkg import TkgResult, attention_tkg
from flashlib.programs.tkg.config import TkgConfig

__all__ = ["CACHES", "SPARE", "cache_arguments", "decode_cached", "steps", "to_pages"]

CACHES = ("rows", "columns", "pages")
#: Pages that the pool has beyond those of the batch.
SPARE = 3


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
    batch, _, seq, d = q.shape
    slots, own = k.shape[1], np.arange(seq)
    cached = slots - seq
    config = TkgConfig(
        curr_sprior=slots,
        full_sprior=bucket or slots,
        tp_k_prior=cache != "columns",
        strided_mm1=strided and cache != "pages",
        use_pos_id=True,
        qk_in_sb=True,
        out_in_sb=out_in_sb,
        fa_tile_s_prior=tile,
        block_len=block_len if cache == "pages" else 0,
    )
    pools, table = _cache(cache, k, v, config, seed)
    options = {
        "config": config,
        "pos_ids": np.tile((cached if pos is None else pos) + own, (batch, 1)),
        "active_blocks_table": table,
        "sink": None if sink is None else np.asarray(sink, np.float32)[:, None],
        "lnc": lnc,
        "hardened": hardened,
    }
    active = k[:, cached:].transpose(2, 0, 1).reshape(d, -1)
    moving = q.transpose(3, 0, 1, 2).reshape(d, -1)
    return (moving, active, v[:, None, cached:], *pools), options


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


def _in_bucket(x: np.ndarray, bucket: int) -> np.ndarray:
    """Put rows into a longer cache; what lies behind them is never to be read."""
    batch, slots, d = x.shape
    out = np.full((batch, 1, bucket, d), np.nan, x.dtype)
    out[:, 0, :slots] = x
    return out


def steps(result: TkgResult) -> Mapping[tuple[str, str], int]:
    """Count the instructions of all cores by step and name."""
    total: dict[tuple[str, str], int] = {}
    for trace in result.traces:
        for key, n in trace.histogram(by=("step", "op")).items():
            total[key] = total.get(key, 0) + n
    return total
