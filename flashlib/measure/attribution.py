"""Find the cause of a gain: ``python -m flashlib.measure.attribution`` (chapter 11).

Two questions, four answers: is there a score matrix, and does the loop stop at the
diagonal? All four paths run the same inner loops and are checked before they are timed.
"""

import argparse
import pathlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from flashlib.cores import usable_cores
from flashlib.experiments.fit import Shares, fit_times, share_out
from flashlib.kernels.ablation import build_ablation
from flashlib.kernels.launch import launch, limit_workers, workers
from flashlib.measure.prefill import check
from flashlib.measure.record import FOLDER, Row, print_table, rows_of, write
from flashlib.measure.timing import interleave
from flashlib.testing import make_qkv
from flashlib.traffic import causal_pairs, score_floats

__all__ = ["PATHS", "Counts", "Path", "compare", "count", "main", "path_of", "shares"]

LENGTHS = (255, 511, 1022, 2044)
N_HEADS, N_KV_HEADS, WIDTH, TILE = 16, 8, 128, 64


class Path(NamedTuple):
    """One of the four: with a matrix or not, with a loop bound or not."""

    matrix: bool
    bounded: bool


PATHS = {
    "matrix, square": Path(True, False),
    "strip, square": Path(False, False),
    "matrix, triangle": Path(True, True),
    "strip, triangle": Path(False, True),
}


class Counts(NamedTuple):
    """What a path does for one head, without a clock.

    Attributes
    ----------
    pairs, exps : int
        Dot products of a query and a key, and exponentials of scores.
    score_bytes : int
        Bytes of scores that are held at once.
    matrix_traffic : int
        Bytes of the matrix that are read or written, all passes together.
    """

    pairs: int
    exps: int
    score_bytes: int
    matrix_traffic: int


def count(path: Path, n: int, itemsize: int = 4) -> Counts:
    """Count one head of `n` tokens.

    A matrix is written, read for the maximum, read and written by exp, and read
    for the product: five times over. A mask writes its upper half once more.

    Examples
    --------
    >>> count(PATHS["matrix, square"], 511).exps, count(PATHS["strip, triangle"], 511)
    (261121, Counts(pairs=130816, exps=130816, score_bytes=256, matrix_traffic=0))
    """
    pairs = causal_pairs(n) if path.bounded else score_floats(n)
    if not path.matrix:
        return Counts(pairs, pairs, itemsize * min(TILE, n), 0)
    masked = 0 if path.bounded else n * (n - 1) // 2
    return Counts(
        pairs, pairs, itemsize * score_floats(n), itemsize * (5 * pairs + masked)
    )


def path_of(
    path: Path, q: np.ndarray, k: np.ndarray, v: np.ndarray
) -> Callable[[], np.ndarray]:
    """Return a path as a function; what it works on is laid out before any clock.

    Keys and values of one head lie together: read in place, a row of 8 heads is 4,096
    bytes wide, which all falls into the same few lines of a cache.
    """
    n = len(q)
    k, v = (np.ascontiguousarray(x.swapaxes(0, 1)).swapaxes(0, 1) for x in (k, v))
    shape = (n, n) if path.matrix else (1, min(TILE, n))
    s, out = np.ones((workers(), *shape), q.dtype), np.empty_like(q)
    scale = q.dtype.type(1 / np.sqrt(q.shape[2]))

    def run() -> np.ndarray:
        launch(build_ablation, q, k, v, scale, path.bounded, s, out)
        return out

    return run


def shares(milliseconds: dict[str, float]) -> Shares:
    """Share out the gain between the matrix and the loop bound."""
    return share_out(*(milliseconds[name] for name in PATHS))


def compare(
    n: int,
    cores: int,
    rounds: int,
    n_heads: int = N_HEADS,
    n_kv_heads: int = N_KV_HEADS,
) -> list[Row]:
    """Check all four paths, time them in turn, and return their rows."""
    sizes = {"n_heads": n_heads, "n_kv_heads": n_kv_heads, "head_dim": WIDTH}
    tensors = make_qkv(n, **sizes, seed=n)
    cores = limit_workers(cores)
    functions = {name: path_of(path, *tensors) for name, path in PATHS.items()}
    for function in functions.values():
        check(function(), tensors, causal=True)
    times = interleave(functions, rounds=rounds)
    flops = {
        name: 4 * n_heads * WIDTH * count(path, n).pairs for name, path in PATHS.items()
    }
    return rows_of(times, flops, "matrix, square", seq=n, cores=cores)


def main(arguments: Sequence[str] | None = None, folder: pathlib.Path = FOLDER) -> None:
    """Measure, print and write ``attribution.json``."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS)
    parser.add_argument("--cores", type=int, nargs="+", default=(1, usable_cores()))
    parser.add_argument("--rounds", type=int, default=7)
    chosen = parser.parse_args(arguments)
    rows, times, fits = [], {}, {}
    for cores in sorted(set(chosen.cores)):
        times[cores] = {name: {} for name in PATHS}
        for n in chosen.lengths:
            found = compare(n, cores, chosen.rounds)
            rows += found
            for row in found:
                times[cores][row.name][n] = row.milliseconds
            gained = shares({row.name: row.milliseconds for row in found})
            print(f"{n} tokens: {gained.gain:.2f} x, matrix {gained.matrix:.0%}")
        fits[cores] = {name: fit_times(t) for name, t in times[cores].items()}
    limit_workers(usable_cores())
    print_table(rows, "Gflop/s", "before")
    sizes = {"n_heads": N_HEADS, "n_kv_heads": N_KV_HEADS, "head_dim": WIDTH}
    facts = {**sizes, "rounds": chosen.rounds, "times": times, "fits": fits}
    print(write("attribution", rows, folder, unit="Gflop/s", peer="before", **facts))


if __name__ == "__main__":
    main()
