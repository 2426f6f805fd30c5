"""Measure all rungs at once: ``python -m flashlib.measure.ladder`` (chapter 9)."""

import argparse

import numpy as np

from flashlib.attention import flash_attention
from flashlib.backends import Backend
from flashlib.backends.base import BLOCK_ROWS
from flashlib.backends.blocked import MOST_BLOCKS
from flashlib.backends.tiles import TilesBackend
from flashlib.kernels.lane_product import LANES
from flashlib.kernels.launch import register_tile
from flashlib.measure.host import usable_cores
from flashlib.measure.peak import flops_per_second, read_bytes_per_second
from flashlib.measure.peers import limit_cores
from flashlib.measure.prefill import race
from flashlib.measure.record import Row, print_table, write
from flashlib.testing import make_qkv
from flashlib.traffic import causal_pairs

__all__ = ["RUNGS", "climb", "main", "sharing"]

# From the score matrix to registers. One rung has no name in `get_backend`.
RUNGS: dict[str, str | Backend] = {
    "blas": "blas",
    "numpy": "numpy",
    "scalar": "scalar",
    "simd": "simd",
    "pool": "pool",
    "tiles": TilesBackend(),
    "blocked": "blocked",
}
N_HEADS, N_KV_HEADS, WIDTH = 16, 8, 128


def sharing() -> dict[str, int]:
    """Return how many query rows share each key that a rung reads, on this machine."""
    _, lanes = register_tile(np.dtype(np.float32))
    one_by_one = dict.fromkeys(("scalar", "simd", "pool"), 1)
    return {
        "numpy": BLOCK_ROWS,
        **one_by_one,
        "tiles": LANES,
        "blocked": MOST_BLOCKS * lanes,
    }


def climb(n: int, cores: int, rounds: int) -> list[Row]:
    """Time all rungs and PyTorch on one causal prefill, in turn."""
    sizes = {"n_heads": N_HEADS, "n_kv_heads": N_KV_HEADS, "head_dim": WIDTH}
    tensors = make_qkv(n, **sizes, seed=n)
    limit_cores(cores)
    functions = {
        name: lambda rung=rung: flash_attention(*tensors, causal=True, backend=rung).out
        for name, rung in RUNGS.items()
    }
    times = race(functions, tensors, True, cores, rounds)
    flops = 4 * N_HEADS * WIDTH * causal_pairs(n)
    return [
        Row(
            f"causal, seq {n}, {cores} core" + "s" * (cores > 1),
            name,
            *(1e3 * x for x in time[:3]),
            flops / time.median / 1e9,
            times["torch"].median / time.median if "torch" in times else None,
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
    rows, peaks, bandwidths = [], {}, {}
    for cores in sorted(set(chosen.cores)):
        tops = [flops_per_second(cores)]
        bandwidths[cores] = read_bytes_per_second(cores) / 1e9
        for n in chosen.lengths:
            rows += climb(n, cores, chosen.rounds)
            tops.append(flops_per_second(cores))
        peaks[cores] = max(tops) / 1e9
    print_table(rows, "GFLOP/s", "torch", peaks)
    for cores, peak in peaks.items():
        print(f"{cores} core(s): {peak:.0f} GFLOP/s, {bandwidths[cores]:.1f} GB/s")
    facts = {"peaks": peaks, "bandwidths": bandwidths, "rows_to_share": sharing()}
    print(write("ladder", rows, unit="GFLOP/s", peer="torch", **facts))


if __name__ == "__main__":
    main()
