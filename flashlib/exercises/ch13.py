"""Exercises on margins, and on sums that can be imitated (chapter 13)."""

import math
from collections.abc import Callable, Sequence

import numpy as np

from flashlib.exercises.exercise import (
    Exercise,
    Step,
    UnfilledError,
    expect,
    expect_close,
    expect_numbers,
)
from flashlib.experiments.division import add_up, divide_first, divide_last

# ---- 13.1 ----------------------------------------------------------------------------


def _three(answer: Sequence) -> None:
    if any(entry is ... for entry in answer):
        raise UnfilledError
    expect_numbers(answer, (3,), "a number per question")


def _entry(place: int, what: str) -> Callable[[Sequence], None]:
    def test(answer: Sequence) -> None:
        expect_close(answer[place], published_shifts()[place], what, 5e-4, 0)

    return test


def published_shifts() -> list[float]:
    """Take logarithms of ratios; percent cancel."""
    odds = math.log(46.8 / (100 - 46.8)) - math.log(46.4 / (100 - 46.4))
    return [math.log(5.70 / 5.60), math.log(6.28 / 5.70), odds]


logs = Exercise(
    number="13.1",
    title="From percent to logits",
    stars=1,
    steps=(
        Step("three numbers", _three),
        Step("a margin is the logarithm of a ratio", _entry(0, "the margin")),
        Step("a rise of a log probability, too", _entry(1, "the rise")),
        Step("odds are against all other words", _entry(2, "the change of log odds")),
    ),
    solution=published_shifts,
    wrong={
        "differences": [0.001, 0.0058, 0.004],
        "powers_of_two": [0.02554, 0.13983, 0.02320],
        "powers_of_ten": [0.00769, 0.04209, 0.00698],
        "no_odds": [0.0177, 0.0969, 0.0086],
        "turned_around": [-0.0177, -0.0969, -0.0161],
    },
    value=True,
)

# ---- 13.2 ----------------------------------------------------------------------------


def _asks(safe: Callable, logits: Sequence, off: float, want: bool, why: str) -> None:
    row = np.array(logits, np.float64)
    got = safe(row.copy(), off)
    expect(
        bool(got) is want,
        f"safe({row.tolist()}, {off}) is {got}; expected {want}; {why}",
    )


def _far(safe: Callable) -> None:
    _asks(safe, [9.0, 1.0, 0.0], 0.5, True, "the lead is 8")
    _asks(safe, [1.0, 9.0, 8.9], 0.5, False, "the lead is 0.1")


def _both_move(safe: Callable) -> None:
    why = "the best may lose 0.5 while the second gains 0.5"
    _asks(safe, [3.0, 2.25, 0.0], 0.5, False, why)
    _asks(
        safe, [3.0, 1.75, 0.0], 0.5, True, "the two together move 1, the lead is 1.25"
    )


def _tie(safe: Callable) -> None:
    _asks(
        safe, [2.0, 3.0], 0.5, False, "both may end at 2.5, and then the order decides"
    )
    _asks(safe, [4.0, 4.0], 0.0, False, "the margin is 0")


def _common(safe: Callable) -> None:
    _asks(safe, [1003.0, 1001.5, 990.0], 0.5, True, "only differences count")
    _asks(safe, [-7.0, -8.5, -9.0], 0.5, True, "logits may be negative")


def _attack(safe: Callable) -> None:
    """Disturb random rows in the worst way that the rule allows."""
    rng = np.random.default_rng(13)
    for _ in range(200):
        row = rng.integers(-8, 8, 6) / 4
        best = int(row.argmax())
        second = int(np.where(np.arange(6) == best, -np.inf, row).argmax())
        off = float(rng.integers(0, 8)) / 4
        lead = row[best] - row[second]
        if lead == 2 * off:
            continue  # a tie, which has a step of its own
        _asks(safe, row, off, bool(lead > 2 * off), f"the lead is {lead}")


def is_safe(logits: np.ndarray, off: float) -> bool:
    """Compare the margin with what the two best can move together."""
    second, best = np.sort(logits)[-2:]
    return bool(best - second > 2 * off)


def _by_chances(logits: np.ndarray, off: float) -> bool:
    p = np.exp(logits - logits.max())
    second, best = np.sort(p / p.sum())[-2:]
    return bool(best - second > 2 * off)


safety = Exercise(
    number="13.2",
    title="The margin below which a text may change",
    stars=2,
    steps=(
        Step("a long lead and a short one", _far),
        Step("the best falls while the second rises", _both_move),
        Step("a tie is not safe", _tie),
        Step("what all logits share does not count", _common),
        Step("two hundred random rows", _attack),
    ),
    solution=is_safe,
    wrong={
        "once_off": lambda z, off: bool(np.sort(z)[-1] - np.sort(z)[-2] > off),
        "ties_are_safe": lambda z, off: bool(
            np.sort(z)[-1] - np.sort(z)[-2] >= 2 * off
        ),
        "chances": _by_chances,
        "against_the_mean": lambda z, off: bool(z.max() - z.mean() > 2 * off),
        "against_the_last": lambda z, off: bool(z.max() - z.min() > 2 * off),
        "relative": lambda z, off: bool(
            np.sort(z)[-1] - np.sort(z)[-2] > 2 * off * np.abs(z).max()
        ),
    },
)

# ---- 13.3 ----------------------------------------------------------------------------

Stream = Callable[[Callable[[int, int], np.ndarray], np.ndarray, int], np.ndarray]


def _row(seq_k: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    s = 4 * rng.standard_normal(seq_k)
    return s.astype(np.float32), rng.standard_normal((seq_k, 5)).astype(np.float32)


def _streams(stream: Stream, seq_k: int, tile: int, seed: int) -> np.ndarray:
    """Run an answer over scores that nobody may hold more than a tile of."""
    s, v = _row(seq_k, seed)

    def scores(start: int, stop: int) -> np.ndarray:
        expect(
            stop - start <= tile,
            f"scores({start}, {stop}) asks for {stop - start}; a tile holds {tile}",
        )
        return s[start:stop].copy()

    return np.asarray(stream(scores, v, tile))


def _near(stream: Stream) -> None:
    for seq_k in (6, 64, 150):
        want = divide_first(*_row(seq_k, seq_k))
        expect_close(_streams(stream, seq_k, 64, seq_k), want, "the output", 1e-5, 1e-5)


def _same_bits(lengths: Sequence[int], tile: int) -> Callable[[Stream], None]:
    def test(stream: Stream) -> None:
        for seq_k in lengths:
            for seed in range(12):
                got = _streams(stream, seq_k, tile, seed)
                want = divide_first(*_row(seq_k, seed))
                apart = int((got != want).sum())
                expect(
                    not apart,
                    f"{seq_k} keys in tiles of {tile}: {apart} of {want.size} numbers "
                    f"differ, by {np.abs(got - want).max():.1e}",
                )

    return test


def stream(
    scores: Callable[[int, int], np.ndarray], v: np.ndarray, tile: int
) -> np.ndarray:
    """Walk for the maximum, then for the sum, then for the output."""
    parts = [(t, min(t + tile, len(v))) for t in range(0, len(v), tile)]
    m = max(scores(*part).max() for part in parts)
    total = np.float32(0)
    for part in parts:
        total = add_up(np.exp(scores(*part) - m), total)
    out = np.zeros(v.shape[1], v.dtype)
    for start, stop in parts:
        weights = np.exp(scores(start, stop) - m) / total
        out = add_up(weights[:, None] * v[start:stop], out)
    return out


def _divide_last_stream(scores: Callable, v: np.ndarray, tile: int) -> np.ndarray:
    parts = [scores(t, min(t + tile, len(v))) for t in range(0, len(v), tile)]
    return divide_last(np.concatenate(parts), v)


def _online(scores: Callable, v: np.ndarray, tile: int) -> np.ndarray:
    m, total, acc = np.float32(-np.inf), np.float32(0), np.zeros(v.shape[1], v.dtype)
    for start in range(0, len(v), tile):
        s = scores(start, min(start + tile, len(v)))
        new = max(m, s.max())
        corr, p = np.exp(m - new), np.exp(s - new)
        total = add_up(p, total * corr)
        acc = add_up(p[:, None] * v[start : start + tile], acc * corr)
        m = new
    return acc / total


def _tile_sums(scores: Callable, v: np.ndarray, tile: int) -> np.ndarray:
    parts = [(t, min(t + tile, len(v))) for t in range(0, len(v), tile)]
    m = max(scores(*part).max() for part in parts)
    total = sum(add_up(np.exp(scores(*part) - m)) for part in parts)
    sums = [
        add_up((np.exp(scores(a, b) - m) / total)[:, None] * v[a:b]) for a, b in parts
    ]
    return sum(sums)


def _times_inverse(scores: Callable, v: np.ndarray, tile: int) -> np.ndarray:
    parts = [(t, min(t + tile, len(v))) for t in range(0, len(v), tile)]
    m = max(scores(*part).max() for part in parts)
    total = np.float32(0)
    for part in parts:
        total = add_up(np.exp(scores(*part) - m), total)
    out = np.zeros(v.shape[1], v.dtype)
    for a, b in parts:
        w = np.exp(scores(a, b) - m) * (np.float32(1) / total)
        out = add_up(w[:, None] * v[a:b], out)
    return out


imitation = Exercise(
    number="13.3",
    title="The old bits from a stream",
    stars=3,
    steps=(
        Step("the right numbers, a tile at a time", _near),
        Step("one tile: the bits of the old loop", _same_bits((1, 6, 17, 64), 64)),
        Step("several tiles: the bits of the old loop", _same_bits((65, 150), 64)),
        Step("small tiles", _same_bits((17, 40), 4)),
    ),
    solution=stream,
    wrong={
        "whole_row": lambda scores, v, tile: divide_first(scores(0, len(v)), v),
        "divides_last": _divide_last_stream,
        "online": _online,
        "sums_of_tiles": _tile_sums,
        "times_inverse": _times_inverse,
        "first_tile_only": lambda scores, v, tile: divide_first(
            scores(0, min(tile, len(v))), v[:tile]
        ),
    },
)

EXERCISES = (logs, safety, imitation)
