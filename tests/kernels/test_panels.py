"""Keys and values in panels: every one is there, in its place, and the rest is 0."""

import numpy as np
import pytest
from kernels.compiled import compiled, small_integers

from flashlib.kernels.panels import Packs, cut_panels, list_tiles, pack_tiles
from flashlib.kernels.targets import TARGETS, this_target

HERE = this_target()
ROWS = TARGETS[HERE].rows
TILE = 2 * ROWS
N_KV_HEADS = 2
# First key and keys of each sequence: more than one tile and a bit, none, a full
# panel, one key, exactly two tiles; they lie apart, and not in order.
KEYS = ((7, TILE + ROWS + 1), (3, 0), (60, ROWS), (0, 1), (80, 2 * TILE))
SEGMENTS = np.array([(0, 1, start, n) for start, n in KEYS])


@compiled
def pack(k, v, segments, tile, room):
    rows = ROWS
    tiles, panel_start = list_tiles(segments, tile, rows)
    n_panels = panel_start[-1]
    k_panels, v_panels, nonfinite = cut_panels(room, k, v, n_panels, rows)
    nonfinite[:] = 9
    counter = np.zeros(1, np.int64)
    packs = Packs(k_panels, v_panels, nonfinite, n_panels)
    pack_tiles(k, v, segments, tiles, tile, packs, counter, HERE)
    return tiles, panel_start, k_panels, v_panels, nonfinite


def panels_of(n):
    return -(-n // ROWS)


N_PANELS = sum(panels_of(n) for _, n in KEYS)


def packed(k, v):
    """Pack into room that holds other numbers, and look at it panel by panel."""
    wide = panels_of(v.shape[2]) * ROWS
    size = N_KV_HEADS * N_PANELS * ROWS * (k.shape[2] + wide)
    found = pack(k, v, SEGMENTS, TILE, np.full(size, 77, k.dtype))
    tiles, panel_start, k_panels, v_panels, nonfinite = found
    assert k_panels.size + v_panels.size == size
    return (
        tiles.tolist(),
        panel_start.tolist(),
        k_panels.reshape(N_KV_HEADS, N_PANELS, k.shape[2], ROWS),
        v_panels.reshape(N_KV_HEADS, N_PANELS * ROWS * wide),
        nonfinite.reshape(N_KV_HEADS, N_PANELS),
    )


def values_of_tile(flat, panel, n_keys, head_dim_v):
    """Return the values of one tile as rows, padding of their width included."""
    padded, columns = panels_of(n_keys) * ROWS, panels_of(head_dim_v)
    first = panel * ROWS * columns * ROWS
    tile = flat[first : first + columns * padded * ROWS].reshape(columns, padded, ROWS)
    return tile[:, :n_keys].swapaxes(0, 1).reshape(n_keys, columns * ROWS)


def inputs(head_dim_v):
    """Return keys and values that are every second of a larger array."""
    k = small_integers(1, 260, N_KV_HEADS, 7)[::2, :, :5]
    v = small_integers(2, 260, N_KV_HEADS, head_dim_v + 3)
    return k, v[::2, :, 1 : 1 + head_dim_v]


def test_tiles_and_panels_are_counted_segment_by_segment():
    tiles, panel_start, *_ = packed(*inputs(4))
    assert panel_start == [0, 4, 4, 5, 6, 10]
    assert tiles == [
        [0, 0, 0],
        [0, TILE, 2],
        [2, 0, 4],
        [3, 0, 5],
        [4, 0, 6],
        [4, TILE, 8],
    ]


@pytest.mark.parametrize("head_dim_v", [1, ROWS - 1, ROWS, 2 * ROWS + 3])
def test_every_key_and_value_is_in_its_panel(head_dim_v):
    k, v = inputs(head_dim_v)
    tiles, panel_start, k_panels, v_panels, nonfinite = packed(k, v)
    assert not nonfinite.any()
    for h in range(N_KV_HEADS):
        for (start, n), first in zip(KEYS, panel_start, strict=False):
            keys = np.zeros((panels_of(n) * ROWS, 5))
            keys[:n] = k[start : start + n, h]
            found = k_panels[h, first : first + panels_of(n)].swapaxes(1, 2)
            np.testing.assert_array_equal(found.reshape(keys.shape), keys)
        for segment, first, panel in tiles:
            start, n = KEYS[segment]
            n_keys = min(TILE, n - first)
            found = values_of_tile(v_panels[h], panel, n_keys, head_dim_v)
            want = v[start + first : start + first + n_keys, h]
            np.testing.assert_array_equal(found[:, :head_dim_v], want)
            assert not found[:, head_dim_v:].any()


def test_what_is_not_finite_is_0_and_marks_its_panel_alone():
    head_dim_v = ROWS + 3
    (k, v), (_, clean) = inputs(head_dim_v), inputs(head_dim_v)
    first, last = KEYS[0][0] + TILE - 1, KEYS[0][0] + KEYS[0][1] - 1
    for at in ((first, 1, 0), (last, 0, head_dim_v - 1)):
        v[at], clean[at] = (np.nan if at[1] else -np.inf), 0
    _, _, _, v_panels, nonfinite = packed(k, v)
    assert np.argwhere(nonfinite).tolist() == [[0, 3], [1, 1]]
    np.testing.assert_array_equal(v_panels, packed(k, clean)[3])
