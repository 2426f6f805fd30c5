"""Measure what pages cost decode: ``python -m flashlib.measure.paged`` (chapter 14).

The same keys and values lie in one piece and in shuffled pages of several
lengths; all are read by one kernel, and the results agree to the bit.
"""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from flashlib.cores import usable_cores
from flashlib.decode import flash_attention_decode, flash_attention_paged
from flashlib.kernels.launch import limit_workers
from flashlib.measure.decode import N_HEADS, N_KV_HEADS, WIDTH, in_pages
from flashlib.measure.record import FOLDER, Row, print_table, rows_of, write
from flashlib.measure.timing import interleave
from flashlib.testing import make_qkv

__all__ = ["compare", "main"]

LENGTHS, BLOCK_LENS = (512, 2048, 8192, 32768), (16, 64, 256)
WHOLE = "in one piece"


def functions_for(length: int) -> dict[str, Callable[[], np.ndarray]]:
    """Return the contiguous cache and every page length, after a check of each."""
    sizes = {"n_heads": N_HEADS, "n_kv_heads": N_KV_HEADS, "head_dim": WIDTH}
    q, k, v = make_qkv(1, length, **sizes, seed=length)
    lengths = np.array([length])

    def whole():
        tensors = (x[None] for x in (q, k, v))
        return flash_attention_decode(*tensors, cache_seqlens=lengths).out

    def paged(pages, table):
        return flash_attention_paged(
            q[None], *pages, block_table=table, cache_seqlens=lengths
        ).out

    functions, want = {WHOLE: whole}, whole()
    for block_len in BLOCK_LENS:
        pages, table = in_pages(k, v, block_len)
        run = functions[f"pages of {block_len}"] = lambda p=pages, t=table: paged(p, t)
        if not np.array_equal(run(), want):
            raise AssertionError(f"pages of {block_len} change bits; expected none")
    return functions


def compare(length: int, cores: int, rounds: int) -> list[Row]:
    """Time one length, all page lengths in turn; the peer is the cache in one piece."""
    limit_workers(cores)
    times = interleave(functions_for(length), rounds=rounds)
    n_bytes = 2 * length * N_KV_HEADS * WIDTH * 4
    return rows_of(times, n_bytes, WHOLE, seq=length, cores=cores)


def main(arguments: Sequence[str] | None = None, folder: Path = FOLDER) -> None:
    """Measure, print and write ``paged.json``."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS)
    parser.add_argument("--cores", type=int, nargs="+", default=(1, usable_cores()))
    parser.add_argument("--rounds", type=int, default=31)
    chosen = parser.parse_args(arguments)
    rows = []
    for cores in sorted(set(chosen.cores)):
        for length in chosen.lengths:
            rows += compare(length, cores, chosen.rounds)
    print_table(rows, "GB/s", WHOLE)
    print(write("paged", rows, folder, unit="GB/s", peer=WHOLE))


if __name__ == "__main__":
    main()
