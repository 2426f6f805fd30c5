"""Measure prefill against PyTorch: ``python -m flashlib.measure.prefill`` (chapter 9).

Every result is checked against the float64 oracle before a clock starts.
"""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from flashlib.attention import flash_attention
from flashlib.cores import usable_cores
from flashlib.kernels.launch import limit_workers
from flashlib.measure.peak import REPEATS, flops_per_second
from flashlib.measure.peers import add_peers
from flashlib.measure.record import FOLDER, Row, cores_text, print_table, rows_of, write
from flashlib.measure.timing import Timing, interleave
from flashlib.testing import make_qkv, oracle
from flashlib.traffic import causal_pairs

__all__ = ["check", "compare", "main", "race"]

LENGTHS = (128, 511, 1024, 2044, 4096)
# Query heads, KV heads, width, causal.
SHAPES = (
    (16, 8, 128, True),
    (32, 8, 64, True),
    (8, 8, 128, True),
    (16, 16, 80, True),
    (16, 8, 128, False),
)


def check(out: np.ndarray, tensors: tuple[np.ndarray, ...], causal: bool) -> float:
    """Return the largest error of the first and the last rows, and insist on it."""
    q, k, v = tensors
    n = min(len(q), 32)
    last = oracle(q[-n:], k, v, causal=causal).out
    errors = [np.abs(out[-n:] - last).max()]
    if causal:
        first = oracle(q[:n], k[:n], v[:n], causal=True).out
        errors.append(np.abs(out[:n] - first).max())
    worst = float(max(errors))
    if not worst < 1e-5:
        raise AssertionError(f"out is off by {worst:.3g}; expected less than 1e-5")
    return worst


def race(
    functions: dict[str, Callable[[], np.ndarray]],
    tensors: tuple[np.ndarray, ...],
    causal: bool,
    cores: int,
    rounds: int,
    beside: dict[str, Callable[[], object]] | None = None,
) -> dict[str, Timing]:
    """Check all functions and PyTorch, then time them in turn.

    What runs `beside` them is timed too, and computes no attention.
    """
    batch = [x[None] for x in tensors]
    with add_peers(functions, *batch, causal=causal, cores=cores):
        for function in functions.values():
            check(function().reshape(tensors[0].shape), tensors, causal)
        return interleave(functions | (beside or {}), rounds=rounds)


def compare(
    n: int, shape: tuple[int, int, int, bool], cores: int, rounds: int
) -> list[Row]:
    """Time one length and shape, flashlib and PyTorch in turn."""
    n_heads, n_kv_heads, width, causal = shape
    tensors = make_qkv(
        n, n_heads=n_heads, n_kv_heads=n_kv_heads, head_dim=width, seed=n
    )
    limit_workers(cores)
    functions = {"flashlib": lambda: flash_attention(*tensors, causal=causal).out}
    times = race(functions, tensors, causal, cores, rounds)
    pairs = causal_pairs(n) if causal else n * n
    flops = 4 * n_heads * width * pairs
    what = f"{n_heads}/{n_kv_heads}/{width} {'causal' if causal else 'full'}"
    return rows_of(times, flops, "torch", what=what, seq=n, cores=cores)


def main(arguments: Sequence[str] | None = None, folder: Path = FOLDER) -> None:
    """Measure, print and write ``prefill.json``."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS)
    parser.add_argument("--cores", type=int, nargs="+", default=(1, usable_cores()))
    parser.add_argument("--shapes", type=int, default=1, help="how many of the shapes")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--repeats", type=int, default=REPEATS, help="of the peak")
    chosen = parser.parse_args(arguments)
    rows, peaks = [], {}
    for cores in sorted(set(chosen.cores)):
        tops = [flops_per_second(cores, repeats=chosen.repeats)]
        for shape in SHAPES[: chosen.shapes]:
            for n in chosen.lengths:
                rows += compare(n, shape, cores, chosen.rounds)
                tops.append(flops_per_second(cores, repeats=chosen.repeats))
        peaks[cores] = max(tops) / 1e9
    print_table(rows, "Gflop/s", "torch", peaks)
    for cores, peak in peaks.items():
        print(f"peak of the register tile, {cores_text(cores)}: {peak:.0f} Gflop/s")
    print(write("prefill", rows, folder, unit="Gflop/s", peer="torch", peaks=peaks))


if __name__ == "__main__":
    main()
