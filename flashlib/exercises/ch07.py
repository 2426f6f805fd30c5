"""Exercises on chains of additions, stripes and races (chapter 7)."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from flashlib.exercises.answers import ch07 as answers
from flashlib.exercises.exercise import (
    Exercise,
    Step,
    expect,
    expect_close,
    expect_numbers,
)
from flashlib.experiments.races import (
    HEAD_DIM,
    N_HEADS,
    Log,
    find_races,
    right_output,
    run_heads,
)

# ---- 7.1 -----------------------------------------------------------------------------

LATENCY, ADDERS, ADDITIONS = 4, 2, 4096


def _cycles_per_addition(chains: int) -> float:
    """Play it: two additions start per cycle, unless their sums are not ready."""
    ready, clock, started = [0] * chains, 0, 0
    while started < ADDITIONS:
        for _ in range(ADDERS):
            if ready[started % chains] <= clock and started < ADDITIONS:
                ready[started % chains] = clock + LATENCY
                started += 1
        clock += 1
    return round(clock / ADDITIONS, 2)


def _five_numbers(answer: Sequence) -> None:
    expect_numbers(answer, (5,), "cycles for each number of accumulators")


def _one_chain(answer: Sequence) -> None:
    want = _cycles_per_addition(1)
    expect_close(answer[0], want, "the cost with one accumulator")


def _shorter_chains(answer: Sequence) -> None:
    want = [_cycles_per_addition(chains) for chains in (2, 4, 8)]
    expect_close(answer[1:4], want, "the cost with 2, 4 and 8")


def _no_gain(answer: Sequence) -> None:
    want = _cycles_per_addition(16)
    expect_close(answer[4], want, "the cost with 16")


def cycles_per_addition() -> list[float]:
    """Take the longer of two waits: for the own sum, and for a free adder."""
    return [max(4 / chains, 1 / 2) for chains in (1, 2, 4, 8, 16)]


chains = Exercise(
    number="7.1",
    title="What an addition costs",
    stars=1,
    steps=(
        Step("five numbers", _five_numbers),
        Step("one accumulator waits for every sum", _one_chain),
        Step("more accumulators share the wait", _shorter_chains),
        Step("in the end the adders are busy", _no_gain),
    ),
    solution=cycles_per_addition,
    wrong={
        "no_latency": [0.5, 0.5, 0.5, 0.5, 0.5],
        "halved_every_time": [4, 2, 1, 0.5, 0.25],
        "one_adder": [4, 2, 1, 1, 1],
        "adders_help_one_chain": [2, 1, 0.5, 0.5, 0.5],
        "four_only": [4, 2, 1, 0.5],
        "per_cycle_for_per_addition": [0.25, 0.5, 1, 2, 2],
    },
    value=True,
    right={"an_array": np.array([4, 2, 1, 0.5, 0.5])},
)

# ---- 7.2 -----------------------------------------------------------------------------


def _runs(columns: Callable, order: Iterable[int]) -> tuple[np.ndarray, list[Log]]:
    for head in range(N_HEADS):
        pair = columns(head)
        listed = isinstance(pair, (tuple, list, np.ndarray)) and np.shape(pair) == (2,)
        expect(
            listed and np.asarray(pair).dtype.kind in "iu",
            f"columns({head}) is {pair!r}; expected a pair of whole numbers, "
            "(first, stop)",
        )
        expect(
            0 <= pair[0] < pair[1] <= N_HEADS * HEAD_DIM,
            f"columns({head}) is {pair!r}; expected first < stop within 0 to "
            f"{N_HEADS * HEAD_DIM}",
        )
    out, logs = run_heads(columns, order)
    return out, [logs[head] for head in range(N_HEADS)]


def _in_range(columns: Callable) -> None:
    _runs(columns, range(N_HEADS))


def _serial_is_right(columns: Callable) -> None:
    out, _ = _runs(columns, range(N_HEADS))
    same = (out == right_output()).all(axis=0)
    wrong = np.flatnonzero(~same).tolist()
    expect(
        not wrong,
        f"run in the order 0, 1, 2, 3, columns {wrong} of the output are wrong; the "
        "break should not show there",
    )


def _race_found(columns: Callable) -> None:
    _, logs = _runs(columns, range(N_HEADS))
    shared = [set(logs[a][1]) & set(logs[a + 1][1]) for a in range(N_HEADS - 1)]
    expect(
        bool(find_races(logs)),
        f"the detector finds 0 races: neighbors share {[len(s) for s in shared]} "
        "numbers, and every order is right",
    )


def _other_order_wrong(columns: Callable) -> None:
    out, _ = _runs(columns, reversed(range(N_HEADS)))
    expect(
        not np.array_equal(out, right_output()),
        "run in the order 3, 2, 1, 0 the output is right, too; a race that changes "
        "0 numbers is hard to show to anybody",
    )


def one_too_wide(head: int) -> tuple[int, int]:
    """Write one column too many; the next head repairs it, if it comes later."""
    return 2 * head, min(2 * head + 3, 8)  # heads of width 2, 8 columns


broken = Exercise(
    number="7.2",
    title="Break a stripe",
    stars=2,
    steps=(
        Step("every head writes columns of the output", _in_range),
        Step("one after another, the heads give the right output", _serial_is_right),
        Step("the detector finds a race all the same", _race_found),
        Step("in another order the output is wrong", _other_order_wrong),
    ),
    solution=one_too_wide,
    wrong={
        "own_stripe": lambda head: (2 * head, 2 * head + 2),
        "too_wide_to_the_left": lambda head: (max(2 * head - 1, 0), 2 * head + 2),
        "beyond_the_end": lambda head: (2 * head, 2 * head + 3),
        "by_kv_head": lambda head: (head // 2 * 2, head // 2 * 2 + 2),
        "half_a_stripe": lambda head: (2 * head, 2 * head + 1),
        **answers.STRIPES_WRONG,
    },
    right=answers.STRIPES_RIGHT,
)

# ---- 7.3 -----------------------------------------------------------------------------


def _job(reads: str = "", writes: str = "") -> Log:
    return set(reads), set(writes)


def _finds(races: Callable, logs: list[Log], why: str) -> None:
    got = _pairs(races(logs))
    said = "; ".join(
        f"job {n} reads {''.join(sorted(r)) or '-'} writes {''.join(sorted(w)) or '-'}"
        for n, (r, w) in enumerate(logs)
    )
    want = find_races(logs)
    expect(got == want, f"{said}: your races are {got}; expected {want}; {why}")


def _pairs(races: object) -> list[tuple[int, ...]]:
    """Return the pairs of an answer, which may be lists or an array."""
    return [tuple(np.asarray(pair).tolist()) for pair in races]


def _disjoint(races: Callable) -> None:
    _finds(races, [_job("", "ab"), _job("", "cd")], "they touch different places")


def _both_write(races: Callable) -> None:
    logs = [_job("", "ab"), _job("", "cd"), _job("", "be")]
    _finds(races, logs, "two jobs write the same place")


def _both_read(races: Callable) -> None:
    _finds(races, [_job("k", "a"), _job("k", "b")], "reading alone disturbs nobody")


def _one_reads(races: Callable) -> None:
    why = "one reads what the other writes"
    _finds(races, [_job("", "a"), _job("a", "b")], why)
    _finds(races, [_job("a", "b"), _job("", "a")], why)


def _its_own(races: Callable) -> None:
    _finds(races, [_job("a", "a"), _job("", "b")], "a job cannot race with itself")


def _real_heads(races: Callable) -> None:
    for columns, name in (
        (lambda head: (2 * head, 2 * head + 2), "own stripes"),
        (one_too_wide, "one column too wide"),
    ):
        _, logs = run_heads(columns, range(N_HEADS))
        ordered = [logs[head] for head in range(N_HEADS)]
        got, want = _pairs(races(ordered)), find_races(ordered)
        expect(got == want, f"four heads, {name}: {got}; expected {want}")


def _many_jobs(races: Callable) -> None:
    """Ask for jobs that race across others, and for pairs with two reasons to."""
    rng = np.random.default_rng(7)
    for _ in range(40):
        drawn = rng.choice(list("abcdefgh"), (5, 3))
        _finds(races, [_job(r, w + x) for r, w, x in drawn], "each pair counts once")


def _writes_only(logs: Sequence[Log]) -> list[tuple[int, int]]:
    return find_races([(set(), writes) for _, writes in logs])


def _all_touching(logs: Sequence[Log]) -> list[tuple[int, int]]:
    return find_races([(set(), reads | writes) for reads, writes in logs])


def _later_reads_only(logs: Sequence[Log]) -> list[tuple[int, int]]:
    pairs = [(a, b) for b in range(len(logs)) for a in range(b)]
    return sorted((a, b) for a, b in pairs if logs[a][1] & (logs[b][0] | logs[b][1]))


def _neighbors_only(logs: Sequence[Log]) -> list[tuple[int, int]]:
    return [pair for pair in find_races(logs) if pair[1] == pair[0] + 1]


detector = Exercise(
    number="7.3",
    title="A race detector",
    stars=3,
    steps=(
        Step("jobs that touch different places do not race", _disjoint),
        Step("jobs that write the same place do", _both_write),
        Step("jobs that read the same place do not", _both_read),
        Step("a reader races with a writer, whichever comes first", _one_reads),
        Step("a job does not race with itself", _its_own),
        Step("the heads of attention", _real_heads),
        Step("forty times five jobs, in order and without doubles", _many_jobs),
    ),
    solution=find_races,
    wrong={
        "writes_only": _writes_only,
        "all_touching": _all_touching,
        "later_reads_only": _later_reads_only,
        "neighbors_only": _neighbors_only,
        "never": lambda logs: [],
        "with_itself": lambda logs: [
            *find_races(logs),
            *((n, n) for n, (reads, writes) in enumerate(logs) if reads & writes),
        ],
        **answers.RACES_WRONG,
    },
    right=answers.RACES_RIGHT,
)

EXERCISES = (chains, broken, detector)
