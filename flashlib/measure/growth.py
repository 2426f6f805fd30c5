"""Measure how time and memory grow: ``python -m flashlib.measure.growth`` (chapter 9).

Time should grow with the square of the length, memory with the length. Peak
memory belongs to a whole process, so every length runs in one of its own.
"""

import argparse
import math
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

from flashlib.measure.record import Row, print_table, write

__all__ = ["exponents", "main", "measure_here"]

LENGTHS = (1024, 2048, 4096, 8192, 16384)
N_HEADS, N_KV_HEADS, WIDTH = 16, 8, 128


def measure_here(n: int, rounds: int) -> tuple[float, float, float, int, int]:
    """Return seconds (median, low, high), bytes at the peak, and bytes by rights.

    By rights there are q, k, v, the result, and K and V once more, in panels.
    """
    from flashlib.attention import flash_attention
    from flashlib.measure.timing import interleave
    from flashlib.testing import make_qkv

    sizes = {"n_heads": N_HEADS, "n_kv_heads": N_KV_HEADS, "head_dim": WIDTH}
    small = make_qkv(64, **sizes)
    flash_attention(*small, causal=True)  # compilers need memory too
    before = _peak_bytes()
    q, k, v = (x.repeat(n // 64, axis=0) for x in small)
    times = interleave(
        {"flash": lambda: flash_attention(q, k, v, causal=True)}, rounds=rounds
    )
    rights = 2 * q.nbytes + 2 * k.nbytes + 2 * v.nbytes + q.nbytes // WIDTH
    return (*times["flash"][:3], _peak_bytes() - before, rights)


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


def _peak_bytes() -> int:
    """Return the most memory this process ever held (Linux)."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def main(arguments: list[str] | None = None) -> None:
    """Measure, print and write ``growth.json``."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS)
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args(arguments)
    rows, memory, seconds = [], {}, {}
    for n in chosen.lengths:
        call = f"print(*measure_here({n}, {chosen.rounds}))"
        code = f"from flashlib.measure.growth import measure_here; {call}"
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        *times, peak, rights = map(float, done.stdout.split())
        seconds[n], memory[n] = times[0], {"peak": peak, "by_rights": rights}
        flops = 4 * N_HEADS * WIDTH * n * (n + 1) / 2
        spent = (1e3 * x for x in times)
        rows.append(Row(f"seq {n}", "flashlib", *spent, flops / times[0] / 1e9, None))
    print_table(rows, "GFLOP/s", "none")
    for n, entry in memory.items():
        share = entry["peak"] / entry["by_rights"]
        print(f"seq {n}: {entry['peak'] / 2**20:.0f} MiB at the peak, {share:.2f} x")
    powers = exponents(seconds)
    print("time grows with the powers", ", ".join(f"{power:.2f}" for power in powers))
    print(write("growth", rows, unit="GFLOP/s", memory=memory, exponents=powers))


if __name__ == "__main__":
    main()
