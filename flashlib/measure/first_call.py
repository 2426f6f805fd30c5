"""Measure what the first call costs: ``python -m flashlib.measure.first_call`` (book).

Once with an empty compiler cache, for everything there is, and once with what
that left behind. Each runs in a process of its own.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from flashlib.measure.record import FOLDER, Row, print_table, write

__all__ = ["EVERYTHING", "FIRST", "main", "seconds_of"]

FIRST = """
import numpy as np
import flashlib
x = np.ones((64, 2, 16), np.float32)
flashlib.flash_attention(x, x, x, causal=True)
"""
EVERYTHING = """
import numpy as np
import flashlib
for dtype in (np.float32, np.float64):
    x = np.ones((64, 2, 16), dtype)
    for name in flashlib.available_backends():
        flashlib.flash_attention(x, x, x, causal=True, backend=name)
        flashlib.flash_attention_decode(
            x[None, :1], x[None], x[None], cache_seqlens=[64], backend=name
        )
"""


def seconds_of(code: str, folder: str) -> float:
    """Return how long a fresh process takes for `code`, its cache in `folder`."""
    start = time.perf_counter()
    environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
    return time.perf_counter() - start


def main(arguments: Sequence[str] | None = None, folder: Path = FOLDER) -> None:
    """Measure, print and write ``first_call.json``."""
    argparse.ArgumentParser(description=__doc__.partition("\n")[0]).parse_args(
        arguments
    )
    rows = []
    with tempfile.TemporaryDirectory() as cache:
        cold = seconds_of(EVERYTHING, cache)
        warm = [seconds_of(FIRST, cache) for _ in range(5)]
    for what, spent in (("everything, cold", [cold]), ("first prefill, warm", warm)):
        low, middle, high = min(spent), sorted(spent)[len(spent) // 2], max(spent)
        times = (1e3 * x for x in (middle, low, high))
        rows.append(Row(what, None, None, "flashlib", *times, middle, None))
    print_table(rows, "seconds", "none")
    print(write("first_call", rows, folder, unit="seconds"))


if __name__ == "__main__":
    main()
