"""Fit times by a linear and a square term, and share out a gain (chapter 11)."""

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

__all__ = ["Fit", "Shares", "fit_times", "share_out"]


class Fit(NamedTuple):
    """Coefficients of ``t = a n + b n^2``.

    Attributes
    ----------
    a, b : float
        In milliseconds per token, and per token squared.
    """

    a: float
    b: float

    def at(self, n: float) -> float:
        """Return the milliseconds at `n` tokens."""
        return self.a * n + self.b * n * n

    def square_share(self, n: float) -> float:
        """Return the part of the time at `n` tokens that the square term takes."""
        return self.b * n * n / self.at(n)


def fit_times(times: Mapping[int, float]) -> Fit:
    """Fit both terms to measured times, every length with the same weight.

    What is made small is the sum of the squares of the *relative* misses: the
    longest length would otherwise decide alone. Two lengths are met exactly.

    Parameters
    ----------
    times : mapping of int to float
        Milliseconds by length.

    Examples
    --------
    >>> fit = fit_times({10: 120.0, 20: 440.0, 40: 1680.0})
    >>> round(fit.a, 6), round(fit.b, 6)
    (2.0, 1.0)
    """
    n = np.array(list(times), float)
    t = np.array(list(times.values()), float)
    columns = np.stack([n / t, n * n / t], axis=1)
    a, b = np.linalg.lstsq(columns, np.ones(len(n)), rcond=None)[0]
    return Fit(float(a), float(b))


class Shares(NamedTuple):
    """How much of a gain each of two changes brought; the two add up to 1.

    Attributes
    ----------
    gain : float
        Time before over time after.
    matrix, bound : float
        Shares of the logarithm of the gain: no matrix, and half the pairs.
    """

    gain: float
    matrix: float
    bound: float


def share_out(before: float, no_matrix: float, bounded: float, both: float) -> Shares:
    """Share out a gain between two changes, from all four times.

    Each change is given the mean of what it brings when it comes first and when it
    comes second. Factors multiply, so the mean is taken of logarithms.

    Examples
    --------
    One change brings a factor of 2, the other of 4, whichever comes first.

    >>> gain, matrix, bound = share_out(8.0, 4.0, 2.0, 1.0)
    >>> gain, round(matrix, 3), round(bound, 3)
    (8.0, 0.333, 0.667)
    """
    whole = math.log(before / both)
    first, second = math.log(before / no_matrix), math.log(bounded / both)
    matrix = (first + second) / 2 / whole
    return Shares(before / both, matrix, 1 - matrix)
