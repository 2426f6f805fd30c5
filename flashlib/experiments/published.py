"""Quote the times that the CPU engine chapter published (chapters 11, 12).

Nothing here was measured by this package. Source: the CPU engine chapter, "Running
it" and "The backend that said no"; times to the first token in milliseconds, one run
each, and the decode rates of the same runs.
"""

from itertools import product
from typing import NamedTuple

from flashlib.experiments.fit import Fit, fit_times

__all__ = [
    "GPU",
    "LONG",
    "RUNS",
    "SHORT",
    "GpuRun",
    "Run",
    "decode_changes",
    "fits",
    "ratio_range",
    "saving",
]

SHORT, LONG = 511, 2044


class Run(NamedTuple):
    """One prompt on one backend, before and after.

    Attributes
    ----------
    before, after : float
        Milliseconds to the first token with the score matrix, and streaming.
    decode_before, decode_after : float or None
        Tokens per second afterwards, by code that had not changed.
    """

    before: float
    after: float
    decode_before: float | None
    decode_after: float | None


RUNS = {
    "simd": {
        SHORT: Run(10044.634, 8747.114, 21.177, 21.304),
        LONG: Run(72200.0, 53300.0, None, None),
    },
    "pool": {
        SHORT: Run(2392.510, 1792.267, 27.840, 27.918),
        LONG: Run(17210.213, 11074.357, 5.969, 5.913),
    },
}


class GpuRun(NamedTuple):
    """The GPU backend at 511 tokens, in milliseconds to the first token."""

    before: float
    streaming_on_one_core: float
    refusing: float


GPU = GpuRun(before=1530.0, streaming_on_one_core=3600.0, refusing=1517.821)


def saving(run: Run) -> float:
    """Return the part of the time that is gone.

    Examples
    --------
    >>> [round(saving(run), 3) for run in RUNS["pool"].values()]
    [0.251, 0.357]
    """
    return 1 - run.after / run.before


def fits(backend: str) -> tuple[Fit, Fit]:
    """Return the fits before and after, each through its two quoted times."""
    runs = RUNS[backend]
    return (
        fit_times({n: run.before for n, run in runs.items()}),
        fit_times({n: run.after for n, run in runs.items()}),
    )


def decode_changes() -> list[float]:
    """Return by how much decode, whose code is the same, moved between the runs.

    Examples
    --------
    >>> [f"{change:+.1%}" for change in decode_changes()]
    ['+0.6%', '+0.3%', '-0.9%']
    """
    runs = [run for by_length in RUNS.values() for run in by_length.values()]
    return [
        run.decode_after / run.decode_before - 1 for run in runs if run.decode_before
    ]


def ratio_range(backend: str, noise: float) -> tuple[float, float]:
    """Return the extremes of the ratio of both square terms, after over before.

    Parameters
    ----------
    backend : str
    noise : float
        Relative error that each of the four quoted times may have.
    """
    short, long = RUNS[backend][SHORT], RUNS[backend][LONG]
    ratios = []
    for w, x, y, z in product((1 - noise, 1 + noise), repeat=4):
        before = fit_times({SHORT: w * short.before, LONG: x * long.before})
        after = fit_times({SHORT: y * short.after, LONG: z * long.after})
        ratios.append(after.b / before.b)
    return min(ratios), max(ratios)
