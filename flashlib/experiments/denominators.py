"""Sum exponentials over keys on the machine, in three ways (chapter 17)."""

from functools import cache

import numpy as np

from flashlib.machine import Machine
from flashlib.machine.dtypes import BFLOAT16
from flashlib.programs import blocks

__all__ = ["BLOCKS", "WIDTH", "exponentials", "sum_on_machine", "values_and_ones"]

BLOCKS, WIDTH = 16, 64


@cache
def exponentials(columns: int) -> np.ndarray:
    """Return exponentials in bfloat16, keys on partitions, ``[128, 16, columns]``."""
    scores = np.random.default_rng(17).standard_normal((BLOCKS * 128, columns))
    p = np.exp(2 * (scores - scores.max(axis=0))).astype(BFLOAT16)
    return p.reshape(BLOCKS, 128, columns).transpose(1, 0, 2)


def values_and_ones(width: int = WIDTH) -> np.ndarray:
    """Return values with a column of ones behind them, ``[128, 16, width + 1]``."""
    rng = np.random.default_rng(18)
    values = rng.standard_normal((128, BLOCKS, width + 1)).astype(BFLOAT16)
    values[:, :, width] = 1
    return values


@cache
def sum_on_machine(way: str, columns: int) -> tuple[np.ndarray, Machine]:
    """Sum in one of `blocks.SUM_VARIANTS`; return the sums and the machine."""
    m = Machine()
    p = m.sbuf.put(exponentials(columns))
    beside = way == blocks.SUM_VARIANTS[2]
    values = m.sbuf.put(values_and_ones()) if beside else None
    return blocks.sum_by_matmul(m, p, way, values), m
