"""Pack keys and values into the order in which the product reads them (chapter 9).

K and V of one head lie ``n_kv_heads * head_dim`` apart from token to token.
At 8 heads of 128 floats that is 4,096 bytes, one page: every row of a tile
falls into the same few sets of the first-level cache. One copy, made once
per call and shared by all query blocks, turns both into panels::

    k  [n_kv_heads, panel, head_dim, rows]      rows = keys
    v  [n_kv_heads, tile, panel, keys, rows]    rows = columns of v

A panel is as many keys (columns) high as the register tile. The last panel of
a sequence is filled up with zeros, so that the product never sees a tail.
"""

from typing import NamedTuple

import numpy as np

from flashlib.kernels.jit import inner
from flashlib.kernels.microkernel import rows_of
from flashlib.kernels.nonfinite import all_finite, clear_nonfinite
from flashlib.kernels.room import round_up
from flashlib.kernels.threads import fetch_add
from flashlib.kernels.transpose import deal_row, gather_panel

__all__ = ["Packs", "cut_panels", "list_tiles", "pack_tiles"]


class Packs(NamedTuple):
    """Keys and values in panels, and which panels hold values that are not finite."""

    k: np.ndarray
    v: np.ndarray
    nonfinite: np.ndarray
    n_panels: int


@inner
def list_tiles(segments, tile, rows):
    """Cut the keys of all segments into tiles.

    Returns
    -------
    tiles : int64, ``[n_tiles, 3]``
        Segment, first key within it, and first panel of every tile.
    panel_start : int64, ``[n_segments + 1]``
        First panel of every segment, and the number of all panels.
    """
    n_segments, count = len(segments), 0
    panel_start = np.zeros(n_segments + 1, np.int64)
    for n in range(n_segments):
        panel_start[n + 1] = panel_start[n] + round_up(segments[n, 3], rows) // rows
        count += round_up(segments[n, 3], tile) // tile
    tiles = np.empty((count, 3), np.int64)
    count = 0
    for n in range(n_segments):
        for first in range(0, segments[n, 3], tile):
            tiles[count, 0] = n
            tiles[count, 1] = first
            tiles[count, 2] = panel_start[n] + first // rows
            count += 1
    return tiles, panel_start


@inner
def cut_panels(room, k, v, n_panels, rows):
    """Cut `k` and `v` of :class:`Packs` out of one array, and add `nonfinite`."""
    n_kv_heads, head_dim, head_dim_v = k.shape[1], k.shape[2], v.shape[2]
    n_rows = n_kv_heads * n_panels * rows
    middle, end = n_rows * head_dim, n_rows * (head_dim + round_up(head_dim_v, rows))
    nonfinite = np.empty(n_kv_heads * n_panels, np.uint8)
    return room[:middle], room[middle:end], nonfinite


@inner
def pack_tiles(k, v, segments, tiles, tile, packs, counter, target):
    """Pack tiles of all KV heads until none is left."""
    n_kv_heads, rows = k.shape[1], rows_of(target)
    nothing = np.zeros(k.shape[2], k.dtype)
    addresses = np.empty(rows, np.int64)
    job = fetch_add(counter)
    while job < len(tiles) * n_kv_heads:
        n, first, panel = tiles[job // n_kv_heads]
        start, n_keys = segments[n, 2] + first, min(tile, segments[n, 3] - first)
        kv_head = job % n_kv_heads
        panel += kv_head * packs.n_panels
        pack_keys(k, start, n_keys, kv_head, packs, panel, nothing, addresses, target)
        pack_values(v, start, n_keys, kv_head, packs, panel, target)
        job = fetch_add(counter)


@inner
def pack_keys(k, start, n_keys, kv_head, packs, panel, nothing, addresses, target):
    """Copy `n_keys` keys into ``[panel, head_dim, rows]``; `nothing` fills it up."""
    rows, head_dim = rows_of(target), k.shape[2]
    for first in range(0, n_keys, rows):
        for r in range(rows):
            row = k[start + first + r, kv_head] if first + r < n_keys else nothing
            addresses[r] = row.ctypes.data
        at = (panel * rows + first) * head_dim
        gather_panel(addresses, 0, head_dim, packs.k, at, target)


@inner
def pack_values(v, start, n_keys, kv_head, packs, panel, target):
    """Copy the values of one tile into ``[panel, keys, rows]``, finite ones only.

    A value that is NaN or infinite is packed as 0, and its panel of keys is
    marked.
    """
    rows, head_dim_v = rows_of(target), v.shape[2]
    zero = v.dtype.type(0)
    padded, whole = round_up(n_keys, rows), head_dim_v // rows
    wide = round_up(head_dim_v, rows)
    at = panel * rows * wide
    packs.nonfinite[panel : panel + padded // rows] = 0
    for t in range(n_keys):
        row, place = v[start + t, kv_head], at + t * rows
        deal_row(row, 0, whole, packs.v, place, padded * rows, target)
        if whole * rows < head_dim_v:
            for r in range(rows):
                d = whole * rows + r
                x = row[d] if d < head_dim_v else zero
                packs.v[place + whole * padded * rows + r] = x
        if not all_finite(row):
            packs.nonfinite[panel + t // rows] = 1
            for d in range(0, wide, rows):
                first = place + d * padded
                clear_nonfinite(packs.v[first : first + rows])
