"""Measure how time grows: ``python -m flashlib.measure.scaling`` (chapter 9).

Time should grow with the square of the length, and fall with the cores.
"""

import argparse
import math
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from flashlib.cores import usable_cores
from flashlib.measure.growth import N_HEADS, WIDTH, measure_apart
from flashlib.measure.record import FOLDER, cores_text, print_table, rows_of, write
from flashlib.measure.timing import Timing
from flashlib.traffic import attention_flops, causal_pairs

__all__ = ["exponents", "main"]

LENGTHS = (1024, 2048, 4096, 8192)


def exponents(seconds: dict[int, float]) -> list[float]:
    """Return the power with which time grows from each length to the next.

    Examples
    --------
    >>> exponents({1024: 1.0, 2048: 4.0, 4096: 16.0})
    [2.0, 2.0]
    """
    return [
        math.log(seconds[b] / seconds[a]) / math.log(b / a)
        for a, b in pairwise(sorted(seconds))
    ]


def main(arguments: Sequence[str] | None = None, folder: Path = FOLDER) -> None:
    """Measure, print and write ``scaling.json``."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS)
    parser.add_argument("--cores", type=int, nargs="+", default=(1, usable_cores()))
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args(arguments)
    counts = sorted(set(chosen.cores))
    rows, seconds = [], {cores: {} for cores in counts}
    for n in chosen.lengths:
        for cores in counts:  # in turn, so that all meet the same disturbances
            found = measure_apart(n, cores, chosen.rounds)
            seconds[cores][n] = found.seconds
            times = {"flashlib": Timing(*found[:3], chosen.rounds)}
            flops = attention_flops(causal_pairs(n), N_HEADS, WIDTH)
            rows += rows_of(times, flops, seq=n, cores=cores)
    print_table(rows, "Gflop/s", "none")
    powers = {cores: exponents(spent) for cores, spent in seconds.items()}
    for cores, found in powers.items():
        print(f"{cores_text(cores)}: powers", ", ".join(f"{x:.2f}" for x in found))
    first, last = seconds[counts[0]], seconds[counts[-1]]
    gains = {n: first[n] / last[n] for n in first}
    print(f"{counts[-1]} against {counts[0]}:", gains)
    print(write("scaling", rows, folder, unit="Gflop/s", exponents=powers, gains=gains))


if __name__ == "__main__":
    main()
