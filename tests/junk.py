"""Junk for what nobody attends, and the calls on which it must not show."""

import numpy as np
import pytest
from cached_ways import engines

JUNK = (np.nan, np.inf, -np.inf, 1e30, -1e30)
backends = pytest.mark.parametrize("backend", engines())
dtypes = pytest.mark.parametrize("dtype", [np.float32, np.float64])

OPTIONS = {
    "plain": {},
    "window": {"window": 9},
    "everything": {"window": (30, 0), "softcap": 3.0, "scale": -0.4, "sink": True},
}
options_given = pytest.mark.parametrize("options", OPTIONS.values(), ids=list(OPTIONS))


def draw(dtype, *shapes, seed=0):
    random = np.random.default_rng(seed)
    return [random.standard_normal(shape).astype(dtype) for shape in shapes]


def with_sink(options, n_heads, dtype):
    if not options.get("sink"):
        return options
    return {**options, "sink": np.linspace(-1, 2, n_heads).astype(dtype)}
