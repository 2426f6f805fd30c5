"""Time functions side by side, round by round (book).

A machine that is shared is never twice the same. Functions that are compared
therefore take turns, so that all of them meet the same disturbances, and the
median of the rounds is what counts. Between two turns there is a rest: threads
of a pool go on spinning for a while when their work is done, and would take a
core from whoever comes next. And each turn begins with a run that is not
counted: it wakes the threads that have fallen asleep meanwhile.
"""

import time
from collections.abc import Callable
from statistics import median
from typing import NamedTuple

__all__ = ["Timing", "interleave"]

REST_SECONDS = 0.02


class Timing(NamedTuple):
    """Seconds of one function over all rounds.

    Attributes
    ----------
    median, low, high : float
        The middle, the fastest and the slowest round, in seconds.
    rounds : int
    """

    median: float
    low: float
    high: float
    rounds: int


def interleave(
    functions: dict[str, Callable[[], object]], *, rounds: int = 9
) -> dict[str, Timing]:
    """Run all functions in turn, `rounds` times, after one turn that is not counted.

    A function that runs elsewhere has a method ``seconds()`` and times itself.

    Examples
    --------
    >>> times = interleave({"nothing": lambda: None}, rounds=7)
    >>> times["nothing"].rounds
    7
    """
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    for turn in range(rounds + 1):
        for name, function in functions.items():
            once = getattr(function, "seconds", lambda f=function: _spent(f))
            time.sleep(REST_SECONDS)
            once()
            spent = once()
            if turn:
                seconds[name].append(spent)
    return {
        name: Timing(median(spent), min(spent), max(spent), len(spent))
        for name, spent in seconds.items()
    }


def _spent(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start
