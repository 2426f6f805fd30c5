"""Measure how memory grows: ``python -m flashlib.measure.memory`` (chapter 9).

The score matrix would grow with the square of the length. What a prefill holds
should be the tensors, the result, and one more copy of K and V.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from flashlib.cores import usable_cores
from flashlib.measure.growth import measure_apart
from flashlib.measure.record import FOLDER, Row, print_table, write

__all__ = ["main"]

LENGTHS = (1024, 4096, 16384)


def main(arguments: Sequence[str] | None = None, folder: Path = FOLDER) -> None:
    """Measure, print and write ``memory.json``; Linux only."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS)
    parser.add_argument("--rounds", type=int, default=1)
    chosen = parser.parse_args(arguments)
    rows, memory, cores = [], {}, usable_cores()
    for n in chosen.lengths:
        found = measure_apart(n, cores, chosen.rounds)
        memory[n] = {"peak": found.peak, "by_rights": found.rights}
        spent = (1e3 * x for x in found[:3])
        held = found.peak / 2**20
        rows.append(Row("", n, cores, "flashlib", *spent, held, None))
    print_table(rows, "MiB", "none")
    for n, entry in memory.items():
        print(f"seq {n}: {entry['peak'] / entry['by_rights']:.2f} x what it should be")
    print(write("memory", rows, folder, unit="MiB", memory=memory))


if __name__ == "__main__":
    main()
