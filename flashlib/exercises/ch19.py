"""Exercises on windows over a ring of slots (chapter 19)."""

from collections.abc import Callable

import numpy as np

from flashlib.exercises.exercise import Exercise, Step, expect, expect_close

# ---- 19.1 ----------------------------------------------------------------------------


def _test_four(answer: object) -> None:
    shape = np.shape(answer)
    expect(shape == (4,), f"the answer has shape {shape}; expected 4 numbers")


def _test_straight(answer: object) -> None:
    expect_close(answer[1:3], [3, 8], "the pair of first slots at 10 and 15")


def _test_wrapped(answer: object) -> None:
    expect_close(answer[0], 12, "the first slot at 3, 4 slots before slot 0: it")


def _test_kept(answer: object) -> None:
    expect_close(answer[3], 7, "cached slots, the query itself counts: their number")


def four_numbers() -> list[int]:
    """Go back 7 slots from the query, around the ring where need be."""
    return [(3 - 7) % 16, 10 - 7, 15 - 7, 8 - 1]


starts = Exercise(
    number="19.1",
    title="Where does the window start?",
    stars=1,
    steps=(
        Step("four numbers", _test_four),
        Step("two windows that do not wrap", _test_straight),
        Step("one that does", _test_wrapped),
        Step("how many cached slots", _test_kept),
    ),
    solution=four_numbers,
    wrong={
        "self_not_counted": [11, 2, 7, 8],
        "negative_slot": [-4, 3, 8, 7],
        "cut_off_at_zero": [0, 3, 8, 7],
        "eight_cached": [12, 3, 8, 8],
        "three_only": [12, 3, 8],
    },
    value=True,
)

# ---- 19.2 ----------------------------------------------------------------------------


def ring_slots(start: int, end: int, n: int) -> set[int]:
    """Walk from start to end around the ring; equal ends are an empty band."""
    return {(start + step) % n for step in range((end - start) % n)}


def _kept(answer: Callable, start: int, end: int, n: int) -> set[int]:
    got = np.asarray(answer(np.arange(n), start, end), np.float64)
    expect(got.shape == (n,), f"{n} slots give the shape {got.shape}; expected ({n},)")
    values = set(np.unique(got).tolist())
    expect(values <= {0.0, 1.0}, f"the band holds {sorted(values)}; expected 0 and 1")
    return set(np.flatnonzero(got).tolist())


def _pair(answer: Callable, start: int, end: int, n: int) -> None:
    got, want = _kept(answer, start, end, n), ring_slots(start, end, n)
    expect(
        got == want,
        f"[{start}, {end}) of {n} slots keeps {sorted(got)}; expected {sorted(want)}",
    )


def _test_inside(answer: Callable) -> None:
    _pair(answer, 2, 5, 8)


def _test_around(answer: Callable) -> None:
    _pair(answer, 6, 3, 8)


def _test_equal(answer: Callable) -> None:
    _pair(answer, 4, 4, 8)


def _test_all(answer: Callable) -> None:
    for n in range(1, 13):
        for start in range(n):
            for end in range(n):
                _pair(answer, start, end, n)


def _test_no_branch(answer: Callable) -> None:
    n = 8
    start, end = (x.reshape(-1, 1) for x in np.mgrid[:n, :n])
    try:
        got = np.asarray(answer(np.arange(n)[None], start, end))
    except ValueError as error:
        expect(False, f"{n * n} bands at once: {error}; an if sees one pair of ends")
    expect(
        got.shape == (n * n, n),
        f"{n * n} bands at once give the shape {got.shape}; expected ({n * n}, {n})",
    )
    for row, a, b in zip(got, start[:, 0], end[:, 0], strict=True):
        kept, want = set(np.flatnonzero(row).tolist()), ring_slots(int(a), int(b), n)
        expect(
            kept == want,
            f"64 bands at once: [{a}, {b}) keeps {sorted(kept)}; "
            f"expected {sorted(want)}",
        )


def band(slot, start, end):
    """Blend the and and the or by the comparison of the two ends."""
    ge, lt = slot >= start, slot < end
    both, either = ge * lt, np.maximum(ge, lt)
    return both + (start > end) * (either * 1 - both)


def _with_if(slot, start, end):
    ge, lt = slot >= start, slot < end
    return ge | lt if start > end else ge & lt


branchless = Exercise(
    number="19.2",
    title="A band without a branch",
    stars=2,
    steps=(
        Step("a band inside", _test_inside),
        Step("a band around the end", _test_around),
        Step("equal ends are empty", _test_equal),
        Step("every band of rings of 1 to 12 slots", _test_all),
        Step("64 bands in one call", _test_no_branch),
    ),
    solution=band,
    wrong={
        "and_only": lambda slot, start, end: (slot >= start) * (slot < end),
        "or_only": lambda slot, start, end: np.maximum(slot >= start, slot < end),
        "end_included": lambda slot, start, end: band(slot, start, end + 1),
        "equal_ends_wrap": lambda slot, start, end: np.where(
            start >= end,
            (slot >= start) | (slot < end),
            (slot >= start) & (slot < end),
        ),
        "sum_of_both": lambda slot, start, end: (slot >= start) * 1 + (slot < end),
        "an_if": _with_if,
        "ring_of_eight": lambda slot, start, end: (
            (slot - start) % 8 < (end - start) % 8
        ),
    },
)

# ---- 19.3 ----------------------------------------------------------------------------


def _counted(answer: Callable, start: int, count: int, n: int) -> None:
    got = np.asarray(answer(np.arange(n), start, count, n), np.float64)
    expect(got.shape == (n,), f"{n} slots give the shape {got.shape}; expected ({n},)")
    kept = set(np.flatnonzero(got).tolist())
    want = {(start + step) % n for step in range(count)}
    expect(
        kept == want,
        f"{count} slots from {start} in a ring of {n}: {sorted(kept)}; "
        f"expected {sorted(want)}",
    )


def _test_some(answer: Callable) -> None:
    _counted(answer, 2, 3, 8)
    _counted(answer, 6, 5, 8)


def _test_none(answer: Callable) -> None:
    _counted(answer, 0, 0, 8)
    _counted(answer, 5, 0, 8)


def _test_full(answer: Callable) -> None:
    for start in range(8):
        _counted(answer, start, 8, 8)


def _test_every(answer: Callable) -> None:
    for n in range(1, 13):
        for start in range(n):
            for count in range(n + 1):
                _counted(answer, start, count, n)


def band_of_count(slot, start, count, n):
    """Measure from the start: the first count distances around the ring are kept."""
    return (slot - start) % n < count


def _by_end(slot, start, count, n):
    return band(slot, start, (start + count) % n)


full_window = Exercise(
    number="19.3",
    title="The full window",
    stars=3,
    steps=(
        Step("some slots, straight and around the end", _test_some),
        Step("no slot", _test_none),
        Step("all slots", _test_full),
        Step("every start and count of rings of 1 to 12 slots", _test_every),
    ),
    solution=band_of_count,
    wrong={
        "by_start_and_end": _by_end,
        "end_not_taken_around": lambda slot, start, count, n: band(
            slot, start, start + count
        ),
        "equal_ends_are_full": lambda slot, start, count, n: (
            (slot - start) % n < ((count - 1) % n) + 1
        ),
        "one_too_many": lambda slot, start, count, n: (slot - start) % n <= count,
        "distance_without_ring": lambda slot, start, count, n: (
            (slot >= start) & (slot - start < count)
        ),
        "count_as_end": lambda slot, start, count, n: band(slot, start, count),
    },
)

EXERCISES = (starts, branchless, full_window)
