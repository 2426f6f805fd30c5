"""Measure the two ceilings: multiply-adds, and bytes from memory (chapter 9).

A ceiling is what the machine can do, so the fastest of many rounds counts, where
everything below it is judged by its median.
"""

from concurrent.futures import ThreadPoolExecutor
from time import perf_counter

import numpy as np

from flashlib.kernels.launch import limit_workers
from flashlib.kernels.peak import count_of_flops, run_peak

__all__ = ["N_BYTES", "REPEATS", "flops_per_second", "read_bytes_per_second"]

# Register tiles per core and round: some milliseconds.
REPEATS = 20_000
# An array that no cache holds.
N_BYTES = 512 * 2**20


def flops_per_second(cores: int, *, repeats: int = REPEATS, rounds: int = 25) -> float:
    """Return the float32 rate of the register-blocked product, operands in cache.

    Parameters
    ----------
    cores : int
        How many of them work at once.
    repeats : int
        Register tiles per core and round.
    rounds : int
        The fastest of them counts.
    """
    cores = limit_workers(cores)
    results = np.empty(cores, np.float32)
    run_peak(results, 1)
    flops = cores * count_of_flops(results.dtype, repeats)
    return flops / _least_seconds(lambda: run_peak(results, repeats), rounds)


def read_bytes_per_second(
    cores: int, *, n_bytes: int = N_BYTES, rounds: int = 7
) -> float:
    """Return the rate at which `cores` threads add up an array out of memory."""
    parts = np.array_split(np.ones(n_bytes // 4, np.float32), cores)
    with ThreadPoolExecutor(cores) as pool:
        return n_bytes / _least_seconds(lambda: list(pool.map(np.sum, parts)), rounds)


def _least_seconds(function, rounds: int) -> float:
    seconds = []
    for _ in range(rounds):
        start = perf_counter()
        function()
        seconds.append(perf_counter() - start)
    return min(seconds)
