"""Measure all rungs at once: ``python -m flashlib.measure.ladder`` (chapter 9)."""

import argparse

from flashlib.attention import flash_attention
from flashlib.measure.host import usable_cores
from flashlib.measure.peak import flops_per_second
from flashlib.measure.peers import limit_cores, torch_prefill
from flashlib.measure.prefill import check
from flashlib.measure.record import Row, print_table, write
from flashlib.measure.timing import interleave
from flashlib.testing import make_qkv
from flashlib.traffic import causal_pairs

__all__ = ["RUNGS", "climb", "main"]

RUNGS = ("blas", "numpy", "scalar", "simd", "pool", "blocked")
N_HEADS, N_KV_HEADS, WIDTH = 16, 8, 128


def climb(n: int, cores: int, rounds: int) -> list[Row]:
    """Time all rungs and PyTorch on one causal prefill, in turn."""
    sizes = {"n_heads": N_HEADS, "n_kv_heads": N_KV_HEADS, "head_dim": WIDTH}
    tensors = make_qkv(n, **sizes, seed=n)
    limit_cores(cores)
    functions = {
        rung: lambda rung=rung: flash_attention(*tensors, causal=True, backend=rung).out
        for rung in RUNGS
    }
    peer = torch_prefill(*tensors, causal=True)
    if peer is not None:
        functions["torch"] = peer
    for function in functions.values():
        check(function(), tensors, True)
    times = interleave(functions, rounds=rounds)
    flops = 4 * N_HEADS * WIDTH * causal_pairs(n)
    return [
        Row(
            f"causal, seq {n}, {cores} core" + "s" * (cores > 1),
            name,
            *(1e3 * x for x in time[:3]),
            flops / time.median / 1e9,
            times["torch"].median / time.median if peer is not None else None,
        )
        for name, time in times.items()
    ]


def main(arguments: list[str] | None = None) -> None:
    """Measure, print and write ``ladder.json``."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--lengths", type=int, nargs="+", default=(511,))
    parser.add_argument("--cores", type=int, nargs="+", default=(1, usable_cores()))
    parser.add_argument("--rounds", type=int, default=7)
    chosen = parser.parse_args(arguments)
    rows, peaks = [], {}
    for cores in sorted(set(chosen.cores)):
        peaks[cores] = flops_per_second(cores) / 1e9
        for n in chosen.lengths:
            rows += climb(n, cores, chosen.rounds)
    print_table(rows, "GFLOP/s", "torch")
    print(write("ladder", rows, unit="GFLOP/s", peer="torch", peaks=peaks))


if __name__ == "__main__":
    main()
