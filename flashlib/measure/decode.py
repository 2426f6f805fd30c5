"""Measure decode against PyTorch: ``python -m flashlib.measure.decode`` (chapter 14).

One new token reads every key and value once, so the unit is bytes per second.
"""

import argparse
from collections.abc import Callable

import numpy as np

from flashlib.decode import flash_attention_decode, flash_attention_paged
from flashlib.measure.host import usable_cores
from flashlib.measure.peak import read_bytes_per_second
from flashlib.measure.peers import limit_cores, torch_decode
from flashlib.measure.record import Row, print_table, write
from flashlib.measure.timing import interleave
from flashlib.testing import make_qkv, oracle

__all__ = ["compare", "main"]

LENGTHS = (512, 2048, 8192, 32768)
N_HEADS, N_KV_HEADS, WIDTH, BLOCK_LEN = 16, 8, 128, 16


def functions_for(length: int) -> dict[str, Callable[[], np.ndarray]]:
    """Return all ways over the same numbers, after a check of each."""
    sizes = {"n_heads": N_HEADS, "n_kv_heads": N_KV_HEADS, "head_dim": WIDTH}
    q, k, v = make_qkv(1, length, **sizes, seed=length)
    order = np.random.default_rng(0).permutation(length // BLOCK_LEN)
    pages = [np.empty_like(x).reshape(-1, BLOCK_LEN, *x.shape[1:]) for x in (k, v)]
    for page, x in zip(pages, (k, v), strict=True):
        page[order] = x.reshape(page.shape)
    lengths, table = np.array([length]), order[None]
    batch = [x[None] for x in (q, k, v)]
    functions = {
        "flashlib": lambda: flash_attention_decode(*batch, cache_seqlens=lengths).out,
        "flashlib, pages of 16": lambda: (
            flash_attention_paged(
                batch[0], *pages, block_table=table, cache_seqlens=lengths
            ).out
        ),
    }
    peer = torch_decode(*batch)
    if peer is not None:
        functions["torch"] = peer
    want = oracle(q, k, v).out
    for name, function in functions.items():
        error = np.abs(function()[0] - want).max()
        if not error < 1e-5:
            raise AssertionError(f"{name} is off by {error:.3g}; expected below 1e-5")
    return functions


def compare(length: int, cores: int, rounds: int) -> list[Row]:
    """Time one length, all ways in turn."""
    limit_cores(cores)
    times = interleave(functions_for(length), rounds=rounds)
    n_bytes = 2 * length * N_KV_HEADS * WIDTH * 4
    case = f"{N_HEADS}/{N_KV_HEADS}/{WIDTH}, {length} keys, {cores} core"
    return [
        Row(
            case + "s" * (cores > 1),
            name,
            *(1e3 * x for x in time[:3]),
            n_bytes / time.median / 1e9,
            times["torch"].median / time.median if "torch" in times else None,
        )
        for name, time in times.items()
    ]


def main(arguments: list[str] | None = None) -> None:
    """Measure, print and write ``decode.json``."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS)
    parser.add_argument("--cores", type=int, nargs="+", default=(1, usable_cores()))
    parser.add_argument("--rounds", type=int, default=21)
    chosen = parser.parse_args(arguments)
    rows, bandwidths = [], {}
    for cores in sorted(set(chosen.cores)):
        bandwidths[cores] = read_bytes_per_second(cores) / 1e9
        for length in chosen.lengths:
            rows += compare(length, cores, chosen.rounds)
    print_table(rows, "GB/s", "torch")
    for cores, rate in bandwidths.items():
        print(f"reading memory on {cores} core(s): {rate:.1f} GB/s")
    print(write("decode", rows, unit="GB/s", peer="torch", bandwidths=bandwidths))


if __name__ == "__main__":
    main()
