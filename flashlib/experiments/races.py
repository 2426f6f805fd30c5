"""Run heads as jobs under watch: who reads and who writes which number (chapter 7)."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from flashlib.reference import materialized_attention
from flashlib.testing import make_qkv

N_HEADS, N_KV_HEADS, HEAD_DIM, TOKENS = 4, 2, 2, 3
Log = tuple[set, set]


class Watched:
    """An array that notes which numbers of it are read and written.

    Parameters
    ----------
    name : str
        How the numbers are called in a log, as ``(name, place)``.
    array : ndarray
        What is shared; places count through it in C order.
    """

    def __init__(self, name: str, array: np.ndarray):
        self.name, self.array = name, array
        self.places = np.arange(array.size).reshape(array.shape)
        self.log: Log = (set(), set())

    def __getitem__(self, at: object) -> np.ndarray:
        self._note(0, at)
        return self.array[at].copy()

    def __setitem__(self, at: object, value: np.ndarray) -> None:
        self._note(1, at)
        self.array[at] = value

    def _note(self, which: int, at: object) -> None:
        places = np.ravel(self.places[at]).tolist()
        self.log[which].update((self.name, place) for place in places)


def run_heads(
    columns: Callable[[int], tuple[int, int]], order: Iterable[int]
) -> tuple[np.ndarray, dict[int, Log]]:
    """Run heads as jobs, one after another, and log what each reads and writes.

    Parameters
    ----------
    columns : callable
        ``columns(head) -> (first, stop)``: what a head writes in every row of the
        output. Its result goes to its own stripe; the rest of the range gets 0.
    order : iterable of int
        The heads, in the order in which they run.

    Returns
    -------
    out : ndarray
        ``[tokens, n_heads * head_dim]``, NaN where nobody wrote.
    logs : dict of int to tuple of set
        What each head read, and what it wrote.
    """
    q, k, v = make_qkv(
        TOKENS, n_heads=N_HEADS, n_kv_heads=N_KV_HEADS, head_dim=HEAD_DIM
    )
    out = Watched("out", np.full((TOKENS, N_HEADS * HEAD_DIM), np.nan, np.float32))
    inputs = [Watched(name, x) for name, x in (("q", q), ("k", k), ("v", v))]
    logs = {}
    for head in order:
        for shared in (*inputs, out):
            shared.log = (set(), set())
        kv_head = head // (N_HEADS // N_KV_HEADS)
        heads = zip(inputs, (head, kv_head, kv_head), strict=True)
        result = materialized_attention(*(x[:, [at]] for x, at in heads), causal=True)
        _write(out, head, columns(head), result.out[:, 0])
        logs[head] = tuple(
            set().union(*(shared.log[which] for shared in (*inputs, out)))
            for which in (0, 1)
        )
    return out.array, logs


def _write(
    out: Watched, head: int, columns: tuple[int, int], result: np.ndarray
) -> None:
    """Put a result into its stripe, as far as it reaches, with zeros beside it."""
    first, stop = columns
    block = np.zeros((TOKENS, stop - first), np.float32)
    for column in range(first, stop):
        if column // HEAD_DIM == head:
            block[:, column - first] = result[:, column % HEAD_DIM]
    out[:, first:stop] = block


def right_output() -> np.ndarray:
    """Return what all heads together should give, ``[tokens, n_heads * head_dim]``."""
    q, k, v = make_qkv(
        TOKENS, n_heads=N_HEADS, n_kv_heads=N_KV_HEADS, head_dim=HEAD_DIM
    )
    return materialized_attention(q, k, v, causal=True).out.reshape(TOKENS, -1)


def find_races(logs: Sequence[Log]) -> list[tuple[int, int]]:
    """Name the pairs of jobs that must not run at the same time.

    Parameters
    ----------
    logs : sequence of tuple of set
        For each job, the places that it reads and the places that it writes.
    """
    pairs = []
    for a, (reads_a, writes_a) in enumerate(logs):
        for b, (reads_b, writes_b) in enumerate(logs[:a]):
            if writes_a & (writes_b | reads_b) or writes_b & reads_a:
                pairs.append((b, a))
    return sorted(pairs)
