"""Race matrix and all rungs: ``python -m flashlib.measure.verdict`` (chapter 12)."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from flashlib.attention import flash_attention
from flashlib.cores import usable_cores
from flashlib.measure.ladder import rungs
from flashlib.measure.prefill import check
from flashlib.measure.record import FOLDER, Row, print_table, rows_of, write
from flashlib.measure.timing import interleave
from flashlib.testing import make_qkv
from flashlib.traffic import causal_pairs

__all__ = ["OPPONENT", "main", "race"]

LENGTHS = (16, 64, 128, 256, 511, 1022, 2044)
N_HEADS, N_KV_HEADS, WIDTH = 8, 4, 128
OPPONENT = "blas"
# From here on three rounds have to do.
LONG = 1022


def race(n: int, cores: int, rounds: int) -> list[Row]:
    """Check every rung on one causal prefill, and time them in turn."""
    sizes = {"n_heads": N_HEADS, "n_kv_heads": N_KV_HEADS, "head_dim": WIDTH}
    tensors = make_qkv(n, **sizes, seed=n)
    functions = {
        name: lambda rung=rung: flash_attention(*tensors, causal=True, backend=rung).out
        for name, rung in rungs(cores).items()
    }
    for function in functions.values():
        check(function(), tensors, causal=True)
    times = interleave(functions, rounds=min(rounds, 3) if n >= LONG else rounds)
    flops = 4 * N_HEADS * WIDTH * causal_pairs(n)
    return rows_of(times, flops, OPPONENT, seq=n, cores=cores)


def main(arguments: Sequence[str] | None = None, folder: Path = FOLDER) -> None:
    """Measure, print and write ``verdict.json``."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS)
    parser.add_argument("--cores", type=int, nargs="+", default=(1, usable_cores()))
    parser.add_argument("--rounds", type=int, default=7)
    chosen = parser.parse_args(arguments)
    rows = []
    for cores in sorted(set(chosen.cores)):
        for n in chosen.lengths:
            rows += race(n, cores, chosen.rounds)
    print_table(rows, "Gflop/s", OPPONENT)
    sizes = {"n_heads": N_HEADS, "n_kv_heads": N_KV_HEADS, "head_dim": WIDTH}
    facts = {**sizes, "rounds": chosen.rounds}
    print(write("verdict", rows, folder, unit="Gflop/s", peer=OPPONENT, **facts))


if __name__ == "__main__":
    main()
