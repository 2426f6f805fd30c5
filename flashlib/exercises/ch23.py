"""Exercises on prefill beside decode (chapter 23)."""

import math
from collections.abc import Callable

import numpy as np

from flashlib.exercises.exercise import Exercise, Step, expect, expect_numbers
from flashlib.experiments.two_kernels import prefill_times, prefill_trace

# ---- 23.1 ----------------------------------------------------------------------------

COUNTED = (("mm1", "nc_matmul"), ("mm2", "nc_matmul"), ("mask", "affine_select"))
NAMES = ("products for the scores", "products for the output", "selects")


def _test_three(answer: object) -> None:
    expect_numbers(answer, (3,), "a count")


def _test_count(place: int) -> Callable:
    def test(answer: object) -> None:
        want = prefill_trace(1024).histogram(by=("step", "op"))[COUNTED[place]]
        expect(
            answer[place] == want,
            f"{answer[place]} {NAMES[place]}; the trace of 1,024 keys has {want}",
        )

    return test


def three_counts() -> list[int]:
    """Eight groups: tiles of 512, runs of 128, one select on each diagonal tile."""
    groups = range(1, 9)
    tiles = sum(math.ceil(g / 4) for g in groups)
    return [tiles, sum(groups), len(groups)]


counts = Exercise(
    number="23.1",
    title="A prompt of 1,024",
    stars=1,
    steps=(
        Step("three numbers", _test_three),
        Step("products for the scores", _test_count(0)),
        Step("products for the output", _test_count(1)),
        Step("selects", _test_count(2)),
    ),
    solution=three_counts,
    wrong={
        "no_skipping": [16, 64, 8],
        "half_of_all": [8, 32, 8],
        "same_size_of_tiles": [36, 36, 8],
        "a_select_per_tile": [12, 36, 12],
        "diagonal_left_out": [12, 28, 8],
    },
    value=True,
)

# ---- 23.2 ----------------------------------------------------------------------------


def _sees(low: int, high: int, first: int, last: int, window: int | None) -> bool:
    """Look at every pair."""
    ahead = np.arange(low, high + 1)[:, None] - np.arange(first, last + 1)
    near = ahead < window if window else np.ones_like(ahead, bool)
    return bool(((ahead >= 0) & near).any())


def _needed(answer: Callable, *call: object) -> None:
    want, got = _sees(*call), answer(*call)
    low, high, first, last, window = call
    expect(
        bool(got) == want,
        f"queries {low} to {high}, keys {first} to {last}, window {window}: {got!r}; "
        f"expected {want}",
    )


def _test_grid(groups: range, runs: range, width: int, windows: tuple) -> Callable:
    def test(answer: Callable) -> None:
        for window in windows:
            for low in groups:
                for first in runs:
                    _needed(answer, low, low + 127, first, first + width - 1, window)

    return test


def needed(low: int, high: int, first: int, last: int, window: int | None) -> bool:
    """Compare the ends: the last query with the first key, and the other way round."""
    if high < first:
        return False
    return window is None or low - (window - 1) <= last


def _low_decides(low: int, high: int, first: int, last: int, window: int | None):
    return low >= first and (window is None or low - (window - 1) <= last)


def _no_window(low: int, high: int, first: int, last: int, window: int | None):
    return high >= first


def _whole_run(low: int, high: int, first: int, last: int, window: int | None):
    return high >= last and (window is None or low - (window - 1) <= last)


def _one_too_far(low: int, high: int, first: int, last: int, window: int | None):
    return high >= first and (window is None or low - window <= last)


def _high_in_window(low: int, high: int, first: int, last: int, window: int | None):
    return high >= first and (window is None or high - (window - 1) <= last)


skip = Exercise(
    number="23.2",
    title="Which tiles are needed",
    stars=2,
    steps=(
        Step(
            "causal, runs of 512 keys",
            _test_grid(range(0, 2048, 128), range(0, 2048, 512), 512, (None,)),
        ),
        Step(
            "causal, groups that begin anywhere",
            _test_grid(range(5, 900, 77), range(0, 900, 100), 100, (None,)),
        ),
        Step(
            "windows",
            _test_grid(
                range(0, 1024, 128), range(0, 1024, 128), 128, (1, 128, 129, 300)
            ),
        ),
    ),
    solution=needed,
    wrong={
        "first_query_decides": _low_decides,
        "no_window": _no_window,
        "the_whole_run_must_be_seen": _whole_run,
        "window_one_too_far": _one_too_far,
        "last_query_in_the_window": _high_in_window,
    },
)

# ---- 23.3 ----------------------------------------------------------------------------


def _by_walking(ns_per_row: float) -> int:
    """Add group after group until the products take as long as the rows."""
    cycles, groups = 0, 0
    while True:
        groups += 1
        cycles += 512 * math.ceil(groups / 4) + 128 * groups
        if groups % 4 == 0 and cycles / 2.4 >= ns_per_row * 128 * groups:
            return 128 * groups


def _overtakes(answer: Callable, ns_per_row: float) -> None:
    want, got = _by_walking(ns_per_row), answer(ns_per_row)
    expect(got == want, f"{ns_per_row} ns per row: {got!r} keys; expected {want}")


def _test_slow(answer: Callable) -> None:
    _overtakes(answer, 6.0)


def _test_fast(answer: Callable) -> None:
    _overtakes(answer, 3.0)
    _overtakes(answer, 1.5)


def _test_slower(answer: Callable) -> None:
    _overtakes(answer, 12.0)


def _test_machine(answer: Callable) -> None:
    keys = answer(prefill_times(2048)[1] / 2048)
    expect(
        keys in range(512, 4096, 512),
        f"{keys!r} keys for our machine; expected a multiple of 512 below 4,096",
    )
    for n, over in ((keys, True), (keys - 512, False)):
        products, traffic = prefill_times(n) if n else (0.0, 1.0)
        expect(
            (products >= traffic) == over,
            f"{n} keys on the machine: products {products:,.0f} ns, traffic "
            f"{traffic:,.0f} ns",
        )


def overtakes(ns_per_row: float) -> int:
    """Count the cycles of all groups for every multiple of 512 keys."""
    for keys in range(512, 131073, 512):
        groups = range(1, keys // 128 + 1)
        scores = sum(512 * math.ceil(g / 4) for g in groups)
        output = sum(128 * g for g in groups)
        if (scores + output) / 2.4 >= ns_per_row * keys:
            return keys
    return 131072


def _no_skipping(ns_per_row: float) -> int:
    for keys in range(512, 131073, 512):
        groups = keys // 128
        if groups * 2 * keys / 2.4 >= ns_per_row * keys:
            return keys
    return 131072


def _scores_only(ns_per_row: float) -> int:
    for keys in range(512, 131073, 512):
        groups = range(1, keys // 128 + 1)
        cycles = sum(512 * math.ceil(g / 4) for g in groups)
        if cycles / 2.4 >= ns_per_row * keys:
            return keys
    return 131072


def _cycles_for_ns(ns_per_row: float) -> int:
    return overtakes(ns_per_row / 2.4)


def _always_the_same(ns_per_row: float) -> int:
    return 1536


def _no_clock(ns_per_row: float) -> int:
    return 512 * math.ceil(ns_per_row * 2.4)


cross = Exercise(
    number="23.3",
    title="Where the matmul overtakes the DMA",
    stars=3,
    steps=(
        Step("6 ns for each row", _test_slow),
        Step("faster rows", _test_fast),
        Step("slower rows", _test_slower),
        Step("the machine agrees", _test_machine),
    ),
    solution=overtakes,
    wrong={
        "no_skipping": _no_skipping,
        "scores_only": _scores_only,
        "cycles_for_ns": _cycles_for_ns,
        "linear": _no_clock,
        "always_the_same": _always_the_same,
    },
)

EXERCISES = (counts, skip, cross)
