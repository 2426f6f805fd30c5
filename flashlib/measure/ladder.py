"""Measure all rungs at once: ``python -m flashlib.measure.ladder`` (chapter 9)."""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from flashlib.attention import flash_attention
from flashlib.backends import Backend
from flashlib.backends.blas import BlasBackend
from flashlib.backends.blocked import MOST_BLOCKS
from flashlib.backends.numpy_tiles import BLOCK_ROWS
from flashlib.backends.tiles import TilesBackend
from flashlib.cores import usable_cores
from flashlib.kernels.lane_product import LANES
from flashlib.kernels.launch import limit_workers
from flashlib.kernels.targets import register_tile
from flashlib.measure.peak import (
    N_BYTES,
    REPEATS,
    flops_per_second,
    read_bytes_per_second,
)
from flashlib.measure.prefill import race
from flashlib.measure.record import FOLDER, Row, cores_text, print_table, rows_of, write
from flashlib.testing import make_qkv
from flashlib.traffic import causal_pairs

__all__ = ["PRODUCTS", "RUNGS", "bare_products", "climb", "main", "rungs", "sharing"]

# From the score matrix to registers. One rung has no name in `get_backend`.
RUNGS = ("blas", "numpy", "scalar", "simd", "pool", "tiles", "blocked")
# No rung: what the products of a score matrix take by themselves.
PRODUCTS = "products alone"
N_HEADS, N_KV_HEADS, WIDTH = 16, 8, 128


def rungs(cores: int) -> dict[str, str | Backend]:
    """Return every rung, told to use `cores` cores; some use one in any case."""
    limit_workers(cores)
    apart = {"blas": BlasBackend(workers=cores), "tiles": TilesBackend()}
    return {name: apart.get(name, name) for name in RUNGS}


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


def bare_products(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> Callable[[], None]:
    """Return the two products of every head, as NumPy ships them, and nothing else.

    No mask, no softmax, and as many threads as the library likes: no way to compute
    both whole products with this library is faster.
    """
    group = q.shape[1] // k.shape[1]
    heads = [np.ascontiguousarray(x.swapaxes(0, 1)) for x in (q, k, v)]

    def multiply() -> None:
        for h, rows in enumerate(heads[0]):
            keys, values = heads[1][h // group], heads[2][h // group]
            (rows @ keys.T) @ values

    return multiply


def climb(n: int, cores: int, rounds: int) -> list[Row]:
    """Time all rungs and PyTorch on one causal prefill, in turn."""
    sizes = {"n_heads": N_HEADS, "n_kv_heads": N_KV_HEADS, "head_dim": WIDTH}
    tensors = make_qkv(n, **sizes, seed=n)
    functions = {
        name: lambda rung=rung: flash_attention(*tensors, causal=True, backend=rung).out
        for name, rung in rungs(cores).items()
    }
    beside = {PRODUCTS: bare_products(*tensors)}
    times = race(functions, tensors, True, cores, rounds, beside)
    flops = 4 * N_HEADS * WIDTH * causal_pairs(n)
    return rows_of(times, flops, "torch", what="causal", seq=n, cores=cores)


def main(arguments: Sequence[str] | None = None, folder: Path = FOLDER) -> None:
    """Measure, print and write ``ladder.json``."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--lengths", type=int, nargs="+", default=(511,))
    parser.add_argument("--cores", type=int, nargs="+", default=(1, usable_cores()))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--repeats", type=int, default=REPEATS, help="of the peak")
    parser.add_argument("--bytes", type=int, default=N_BYTES, help="of what is read")
    chosen = parser.parse_args(arguments)
    rows, peaks, bandwidths = [], {}, {}
    for cores in sorted(set(chosen.cores)):
        tops = [flops_per_second(cores, repeats=chosen.repeats)]
        bandwidths[cores] = read_bytes_per_second(cores, n_bytes=chosen.bytes) / 1e9
        for n in chosen.lengths:
            rows += climb(n, cores, chosen.rounds)
            tops.append(flops_per_second(cores, repeats=chosen.repeats))
        peaks[cores] = max(tops) / 1e9
    print_table(rows, "Gflop/s", "torch", peaks, unlimited=(PRODUCTS,))
    for cores, peak in peaks.items():
        rates = f"{peak:.0f} Gflop/s, {bandwidths[cores]:.1f} GB/s"
        print(f"{cores_text(cores)}: {rates}")
    facts = {"peaks": peaks, "bandwidths": bandwidths, "rows_to_share": sharing()}
    print(write("ladder", rows, folder, unit="Gflop/s", peer="torch", **facts))


if __name__ == "__main__":
    main()
