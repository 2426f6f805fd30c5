"""Relatives of the mutant no_max, and a watch on the scores they meet (chapter 8)."""

from collections.abc import Callable

import numpy as np

from flashlib.mutants import PlainLoop


class CappedExponent(PlainLoop):
    """It subtracts nothing and cuts exponents off at 80."""

    def largest(self, s: np.ndarray) -> np.floating:
        """Return 0 for every tile."""
        return s.dtype.type(0)

    def exp(self, x: np.ndarray) -> np.ndarray:
        """Cut off what would overflow."""
        return np.exp(np.minimum(x, 80))


class FirstScore(PlainLoop):
    """It subtracts the first score instead of the largest."""

    def step(self, m, l, acc, s, v):
        """Keep the first score as the reference of the row."""
        if m == -np.inf and s.size:
            m = s[0]
        p = self.exp(s - m)
        return m, l + p.sum(), acc + p @ v


class Watched:
    """An attention function that remembers the largest score it was asked for."""

    def __init__(self, attention: Callable):
        self.attention, self.top = attention, 0.0

    def __call__(self, q, k, v, **options):
        scale = options.get("scale")
        scale = q.shape[2] ** -0.5 if scale is None else scale
        with np.errstate(all="ignore"):
            s = np.einsum("ihd,jhd->hij", q, np.repeat(k, q.shape[1] // k.shape[1], 1))
        self.top = max(self.top, float(np.abs(s * scale).max(initial=0)))
        with np.errstate(all="ignore"):
            return self.attention(q, k, v, **options)
