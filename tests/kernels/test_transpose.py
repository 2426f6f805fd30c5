"""Rows to columns and back, for two vector widths and depths that fit neither."""

from functools import cache

import numpy as np
import pytest
from kernels.compiled import compiled, lanes_here, small_integers

from flashlib.kernels.targets import TARGETS, this_target
from flashlib.kernels.transpose import (
    deal_row,
    gather_lanes,
    gather_panel,
    scatter_lanes,
)

EMPTY = -99
# The widest and the narrowest; both compile everywhere.
TARGET = pytest.mark.parametrize("target", sorted({0, this_target()}))
DTYPE = pytest.mark.parametrize("dtype", [np.float32, np.float64])


@cache
def kernels_for(target):
    """Return the four copies, compiled for one target."""

    @compiled
    def panel(rows, rows_at, depth, out, out_at):
        gather_panel(rows, rows_at, depth, out, out_at, target)

    @compiled
    def gather(rows, rows_at, depth, out, out_at, step):
        gather_lanes(rows, rows_at, depth, out, out_at, step, target)

    @compiled
    def scatter(values, values_at, step, depth, rows, rows_at):
        scatter_lanes(values, values_at, step, depth, rows, rows_at, target)

    @compiled
    def deal(row, row_at, n_panels, out, out_at, step):
        deal_row(row, row_at, n_panels, out, out_at, step, target)

    return panel, gather, scatter, deal


def depths(lanes):
    """No column, less than a square of registers, exactly one, and with a rest."""
    return sorted({0, 1, lanes - 1, lanes, lanes + 1, 2 * lanes + 3})


def scattered_rows(count, depth, dtype):
    """Return rows out of order in memory, and their addresses behind two others."""
    memory = small_integers(count, 2 * count, depth + 3, dtype=dtype)
    rows = [memory[2 * n + 1, 1 : 1 + depth] for n in range(count)][::-1]
    return rows, np.array([0, 0, *(row.ctypes.data for row in rows)]), memory


@TARGET
@DTYPE
def test_a_panel_is_its_rows_side_by_side(dtype, target):
    panel, *_ = kernels_for(target)
    n = TARGETS[target].rows
    for depth in depths(lanes_here(dtype, target)):
        rows, addresses, _ = scattered_rows(n, depth, dtype)
        out = np.full(5 + depth * n + 5, EMPTY, dtype)
        want = out.copy()
        want[5 : 5 + depth * n] = np.array(rows).T.ravel()
        panel(addresses, 2, depth, out, 5)
        np.testing.assert_array_equal(out, want)


@TARGET
@DTYPE
def test_lanes_are_gathered_and_scattered(dtype, target):
    _, gather, scatter, _ = kernels_for(target)
    n = lanes_here(dtype, target)
    step = 3 * n
    for depth in depths(n):
        rows, addresses, memory = scattered_rows(n, depth, dtype)
        out = np.full((depth + 1, step), EMPTY, dtype)
        want = out.copy()
        want[:depth, n : 2 * n] = np.array(rows).T
        gather(addresses, 2, depth, out.reshape(-1), n, step)
        np.testing.assert_array_equal(out, want)

        kept = memory.copy()
        for row in rows:
            row[:] = EMPTY
        scatter(out.reshape(-1), n, step, depth, addresses, 2)
        np.testing.assert_array_equal(memory, kept)


@TARGET
@DTYPE
def test_a_row_is_dealt_to_its_panels(dtype, target):
    *_, deal = kernels_for(target)
    n = TARGETS[target].rows
    for n_panels in (0, 1, 3):
        row = small_integers(n_panels, 2 + n_panels * n + 1, dtype=dtype)
        out = np.full((4, 5 * n), EMPTY, dtype)
        want = out.copy()
        want[:n_panels, n : 2 * n] = row[2:-1].reshape(n_panels, n)
        deal(row, 2, n_panels, out.reshape(-1), n, 5 * n)
        np.testing.assert_array_equal(out, want)
