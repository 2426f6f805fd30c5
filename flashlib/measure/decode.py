"""Measure decode against PyTorch: ``python -m flashlib.measure.decode`` (chapter 14).

One new token reads every key and value once, so the unit is bytes per second.
"""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from flashlib.cores import usable_cores
from flashlib.decode import flash_attention_decode, flash_attention_paged
from flashlib.kernels.launch import limit_workers
from flashlib.measure.peak import N_BYTES, read_bytes_per_second
from flashlib.measure.peers import add_peers
from flashlib.measure.record import FOLDER, Row, cores_text, print_table, rows_of, write
from flashlib.measure.timing import interleave
from flashlib.testing import make_qkv, oracle

__all__ = ["compare", "in_pages", "main"]

LENGTHS = (512, 2048, 8192, 32768)
N_HEADS, N_KV_HEADS, WIDTH, BLOCK_LEN = 16, 8, 128, 16


def functions_for(
    q: np.ndarray, k: np.ndarray, v: np.ndarray
) -> dict[str, Callable[[], np.ndarray]]:
    """Return decode over a cache in one piece, and over shuffled pages."""
    batch, lengths = [x[None] for x in (q, k, v)], np.array([len(k)])
    pages, table = in_pages(k, v, BLOCK_LEN)
    return {
        "flashlib": lambda: flash_attention_decode(*batch, cache_seqlens=lengths).out,
        "flashlib, pages of 16": lambda: (
            flash_attention_paged(
                batch[0], *pages, block_table=table, cache_seqlens=lengths
            ).out
        ),
    }


def in_pages(
    k: np.ndarray, v: np.ndarray, block_len: int
) -> tuple[list[np.ndarray], np.ndarray]:
    """Return K and V in pages of `block_len`, shuffled, and the table to them."""
    order = np.random.default_rng(0).permutation(len(k) // block_len)
    pages = [np.empty_like(x).reshape(-1, block_len, *x.shape[1:]) for x in (k, v)]
    for page, x in zip(pages, (k, v), strict=True):
        page[order] = x.reshape(page.shape)
    return pages, order[None]


def compare(length: int, cores: int, rounds: int) -> list[Row]:
    """Time one length, all ways in turn."""
    limit_workers(cores)
    sizes = {"n_heads": N_HEADS, "n_kv_heads": N_KV_HEADS, "head_dim": WIDTH}
    tensors = make_qkv(1, length, **sizes, seed=length)
    functions, want = functions_for(*tensors), oracle(*tensors).out
    batch = [x[None] for x in tensors]
    with add_peers(functions, *batch, causal=False, cores=cores):
        for name, function in functions.items():
            error = np.abs(function()[0] - want).max()
            if not error < 1e-5:
                raise AssertionError(
                    f"{name} is off by {error:.3g}; expected below 1e-5"
                )
        times = interleave(functions, rounds=rounds)
    n_bytes = 2 * length * N_KV_HEADS * WIDTH * 4
    what = f"{N_HEADS}/{N_KV_HEADS}/{WIDTH}"
    return rows_of(times, n_bytes, "torch", what=what, seq=length, cores=cores)


def main(arguments: Sequence[str] | None = None, folder: Path = FOLDER) -> None:
    """Measure, print and write ``decode.json``."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS)
    parser.add_argument("--cores", type=int, nargs="+", default=(1, usable_cores()))
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--bytes", type=int, default=N_BYTES, help="of what is read")
    chosen = parser.parse_args(arguments)
    rows, bandwidths = [], {}
    for cores in sorted(set(chosen.cores)):
        bandwidths[cores] = read_bytes_per_second(cores, n_bytes=chosen.bytes) / 1e9
        for length in chosen.lengths:
            rows += compare(length, cores, chosen.rounds)
    print_table(rows, "GB/s", "torch")
    for cores, rate in bandwidths.items():
        print(f"reading memory, {cores_text(cores)}: {rate:.1f} GB/s")
    print(
        write("decode", rows, folder, unit="GB/s", peer="torch", bandwidths=bandwidths)
    )


if __name__ == "__main__":
    main()
