"""Race the matrix and the rungs: ``python -m flashlib.measure.verdict`` (chapter 12).

The matrix products of NumPy take their number of threads from the environment, when
they are loaded; every number of cores therefore runs in a process of its own.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence

from flashlib.attention import flash_attention
from flashlib.kernels.peak import limit_workers
from flashlib.measure.host import usable_cores
from flashlib.measure.ladder import RUNGS
from flashlib.measure.prefill import check
from flashlib.measure.record import Row, print_table, write
from flashlib.measure.timing import interleave
from flashlib.testing import make_qkv
from flashlib.traffic import causal_pairs

__all__ = ["OPPONENT", "main", "race_here"]

LENGTHS = (16, 64, 128, 256, 511, 1022, 2044)
N_HEADS, N_KV_HEADS, WIDTH = 8, 4, 128
OPPONENT = "blas"
# From here on three rounds have to do.
LONG = 1022


def race_here(n: int, cores: int, rounds: int) -> list[Row]:
    """Check every rung on one causal prefill, and time them in turn."""
    sizes = {"n_heads": N_HEADS, "n_kv_heads": N_KV_HEADS, "head_dim": WIDTH}
    tensors = make_qkv(n, **sizes, seed=n)
    limit_workers(cores)
    functions = {
        name: lambda rung=rung: flash_attention(*tensors, causal=True, backend=rung).out
        for name, rung in RUNGS.items()
    }
    for function in functions.values():
        check(function(), tensors, causal=True)
    times = interleave(functions, rounds=min(rounds, 3) if n >= LONG else rounds)
    flops = 4 * N_HEADS * WIDTH * causal_pairs(n)
    return [
        Row(
            f"seq {n}, {cores} core" + "s" * (cores > 1),
            name,
            *(1e3 * x for x in time[:3]),
            flops / time.median / 1e9,
            times[OPPONENT].median / time.median,
        )
        for name, time in times.items()
    ]


def _race_apart(lengths: Sequence[int], cores: int, rounds: int) -> list[Row]:
    """Run `race_here` for all lengths in a process with so many BLAS threads."""
    variables = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    threads = dict.fromkeys(variables, str(cores))
    code = (
        "import json; from flashlib.measure.verdict import race_here\n"
        f"rows = [race_here(n, {cores}, {rounds}) for n in {list(lengths)}]\n"
        "print(json.dumps(rows))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **threads, "NUMBA_NUM_THREADS": str(usable_cores())},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return [Row(*row) for rows in json.loads(done.stdout) for row in rows]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and write ``verdict.json``."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS)
    parser.add_argument("--cores", type=int, nargs="+", default=(1, usable_cores()))
    parser.add_argument("--rounds", type=int, default=7)
    chosen = parser.parse_args(arguments)
    rows = []
    for cores in sorted(set(chosen.cores)):
        rows += _race_apart(chosen.lengths, cores, chosen.rounds)
    print_table(rows, "GFLOP/s", OPPONENT)
    sizes = {"n_heads": N_HEADS, "n_kv_heads": N_KV_HEADS, "head_dim": WIDTH}
    facts = {**sizes, "rounds": chosen.rounds, "blas_threads": "as many as cores"}
    print(write("verdict", rows, unit="GFLOP/s", peer=OPPONENT, **facts))


if __name__ == "__main__":
    main()
