"""Weigh arithmetic against traffic: when to give up the matrix (chapter 12)."""

from typing import NamedTuple

from flashlib.errors import ArgumentError
from flashlib.traffic import TEXT_PASSES, crossings

__all__ = ["Balance", "break_even", "traffic_share", "weigh"]

WIDTH, ITEMSIZE = 128, 4
CROSSINGS = crossings(TEXT_PASSES)


def traffic_share(
    balance: float,
    *,
    width: int = WIDTH,
    n_crossings: float = CROSSINGS,
    itemsize: int = ITEMSIZE,
) -> float:
    """Return the time of the matrix's traffic in units of its arithmetic.

    Parameters
    ----------
    balance : float
        Operations that the machine of the matrix does per byte that it moves; 0 for
        a memory that costs nothing.
    width : int
        head_dim: a pair costs ``4 * width`` operations.
    n_crossings : float
        How often each score is read or written.
    itemsize : int
        Bytes per score.

    Examples
    --------
    >>> traffic_share(64.0)
    3.0
    """
    if not balance >= 0:
        raise ArgumentError(
            f"balance has {balance!r}; expected a number >= 0; it counts operations "
            "per byte"
        )
    return n_crossings * itemsize * balance / (4 * width)


def break_even(balance: float, pairs: float = 0.5, **sizes: float) -> float:
    """Return the compute ratio from which on streaming takes less time.

    Parameters
    ----------
    balance, sizes
        As in :func:`traffic_share`.
    pairs : float
        Pairs that streaming visits, as a part of those the matrix holds.

    Examples
    --------
    >>> break_even(0.0), break_even(64.0)
    (0.5, 0.125)
    """
    return pairs / (1 + traffic_share(balance, **sizes))


class Balance(NamedTuple):
    """Both times, in units of the arithmetic of the matrix.

    Attributes
    ----------
    arithmetic, traffic : float
        Of the matrix; the first is 1 by definition of the unit.
    streaming : float
        Of the loop that holds no matrix.
    """

    arithmetic: float
    traffic: float
    streaming: float

    @property
    def flash_wins(self) -> bool:
        """Whether streaming takes less time."""
        return self.streaming < self.arithmetic + self.traffic


def weigh(
    compute_ratio: float, balance: float, pairs: float = 0.5, **sizes: float
) -> Balance:
    """Return both times where streaming computes `compute_ratio` times as fast.

    Examples
    --------
    >>> weigh(0.25, balance=64.0)
    Balance(arithmetic=1.0, traffic=3.0, streaming=2.0)
    """
    return Balance(1.0, traffic_share(balance, **sizes), pairs / compute_ratio)
