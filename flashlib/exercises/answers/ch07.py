"""More answers to the exercises on stripes and races (chapter 7)."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from flashlib.experiments.races import Log

STRIPES_WRONG = {
    "floats": lambda head: (2.0 * head, min(2.0 * head + 3, 8.0)),
    "a_range": lambda head: range(2 * head, 2 * head + 2),
    "a_slice": lambda head: slice(2 * head, min(2 * head + 3, 8)),
    "everything": lambda head: (0, 8),
    "backwards": lambda head: (6 - 2 * head, 8 - 2 * head),
}
STRIPES_RIGHT = {
    "to_the_end": lambda head: (2 * head, 8),
    "an_array": lambda head: np.array([2 * head, min(2 * head + 3, 8)]),
    "one_head_only": lambda head: [2 * head, 2 * head + 2 + (head == 1)],
}


def _each_reason(logs: Sequence[Log]) -> list[tuple[int, int]]:
    """Name a pair once for each place at which its jobs meet."""
    found = []
    for (a, (reads_a, writes_a)), (b, (reads_b, writes_b)) in combinations(
        enumerate(logs), 2
    ):
        met = writes_a & (reads_b | writes_b) | writes_b & reads_a
        found += [(a, b)] * len(met)
    return found


def _by_the_later_job(logs: Sequence[Log]) -> list[tuple[int, int]]:
    found = set(_each_reason(logs))
    return sorted(found, key=lambda pair: pair[::-1])


RACES_WRONG = {"each_reason": _each_reason, "by_the_later_job": _by_the_later_job}


def _consuming(logs: list[Log]) -> np.ndarray:
    """Take the logs apart while looking, and return an array of pairs."""
    found, place = [], 0
    while logs:
        reads, writes = logs.pop(0)
        for later, (other_reads, other_writes) in enumerate(logs, place + 1):
            if (
                not writes.isdisjoint(other_reads | other_writes)
                or reads & other_writes
            ):
                found.append((place, later))
        place += 1
    return np.array(found).reshape(-1, 2)


RACES_RIGHT = {
    "consuming": _consuming,
    "lists": lambda logs: [list(pair) for pair in sorted(set(_each_reason(logs)))],
}
