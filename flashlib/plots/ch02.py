"""Draw bytes against cache sizes, and the speed of one pass (chapter 2)."""

import math
from collections.abc import Mapping, Sequence

from flashlib.plots import palette
from flashlib.plots.svg import (
    BLUE,
    FAINT,
    GRAY,
    GREEN,
    INK,
    ORANGE,
    PURPLE,
    line,
    picture,
    rect,
)
from flashlib.plots.svg import text as words_at

WIDTH, HEIGHT = 640, 408
LEFT, RIGHT = 20.0, 620.0
FIRST, LAST = 2, 13  # decades: 100 B to 10 TB
TOP, PITCH, BAR = 66.0, 48.0, 17.0
TICKS = {3: "1 kB", 6: "1 MB", 9: "1 GB", 12: "1 TB"}
SIZE = 16


def bytes_picture(state: Mapping[str, object], alt: str) -> str:
    """Draw one bar per stage, with the caches as lines through all of them."""
    n = f"{state['tokens']:,}"
    bars = (
        ("state", "flash: 64 scores and one running numerator", BLUE),
        ("tensors", "q, k, v and out of one head", GRAY),
        ("matrix", f"one score matrix, {n} × {n}", ORANGE),
        ("all", "the 448 matrices of one prefill", ORANGE),
        ("least", "bytes that move: write, rewrite, rewrite, read", PURPLE),
        ("most", "bytes that move: one pass per loop", PURPLE),
    )
    body = [*_grid(), *_names(state)]
    for place, (key, label, color) in enumerate(bars):
        top = TOP + place * PITCH
        body += _bar(top, label, state[key], color) + _cuts(top, state)
    return picture(WIDTH, HEIGHT, body, alt, state)


def _x(nbytes: float) -> float:
    share = (math.log10(nbytes) - FIRST) / (LAST - FIRST)
    return LEFT + share * (RIGHT - LEFT)


def _grid() -> list[str]:
    """Draw one line per decade, with labels at the bottom."""
    base = TOP + 6 * PITCH
    parts = []
    for decade in range(FIRST, LAST + 1):
        x = _x(10.0**decade)
        parts.append(line(x, TOP - 12, x, base - 8, FAINT))
        if decade in TICKS:
            parts.append(words_at(x, HEIGHT - 8, TICKS[decade], size=SIZE, fill=GRAY))
    return parts


def _names(state: Mapping[str, object]) -> list[str]:
    """Name common caches at the top and those of the build machine at the bottom."""
    base = TOP + 6 * PITCH
    parts = [words_at(RIGHT, 18, "caches, common", "end", SIZE)]
    for level, size in state["typical"].items():
        x = _x(size)
        parts.append(words_at(x, 18, level, size=SIZE, fill=GREEN, weight="bold"))
        parts.append(words_at(x, 35, _size(size), size=14))
        parts.append(line(x, 40, x, 48, GREEN, 2))
    where = "caches, build machine" if state["machine"] else "build machine: not named"
    parts.append(words_at(RIGHT, base + 14, where, "end", SIZE))
    for level, size in state["machine"].items():
        x = _x(size)
        parts.append(line(x, base - 8, x, base, INK, 2))
        parts.append(words_at(x, base + 14, level, size=SIZE, weight="bold"))
        parts.append(words_at(x, base + 30, _size(size), size=14))
    return parts


def _cuts(top: float, state: Mapping[str, object]) -> list[str]:
    """Draw the caches across one bar: common ones above it, the machine's below."""
    above, below = top + 6, top + 9 + BAR
    return [
        *(
            line(_x(size), above, _x(size), below - 12, GREEN, 2)
            for size in state["typical"].values()
        ),
        *(
            line(_x(size), above + 12, _x(size), below, INK, 2)
            for size in state["machine"].values()
        ),
    ]


def _bar(top: float, label: str, nbytes: int, color: str) -> list[str]:
    """Draw a labeled bar that starts at the left edge."""
    return [
        words_at(LEFT + 2, top, label, "start", SIZE),
        words_at(RIGHT, top, in_words(nbytes), "end", SIZE, weight="bold"),
        rect(LEFT, top + 6, _x(nbytes) - LEFT, BAR, color),
    ]


def _size(nbytes: int) -> str:
    """Write a cache size in powers of 1,024."""
    if nbytes >= 2**20:
        return f"{nbytes / 2**20:g} MiB"
    return f"{nbytes / 2**10:g} KiB"


def in_words(nbytes: float) -> str:
    """Write bytes in powers of 1,000 with three digits."""
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if nbytes >= size:
            return f"{nbytes / size:.3g} {unit}"
    return f"{nbytes:,} B"


def pass_speed(
    tokens: Sequence[int], ns_per_score: Sequence[float], caches: Mapping[int, int]
) -> object:
    """Plot the time of one rewrite per score against the size of the matrix.

    Parameters
    ----------
    tokens : sequence of int
        Prompt lengths, ascending.
    ns_per_score : sequence of float
        Median time of one read and one write of one score, in nanoseconds.
    caches : mapping of int to int
        Bytes by cache level, drawn as lines.
    """
    import matplotlib.pyplot as plt
    from matplotlib.patheffects import withStroke

    figure, axes = plt.subplots(figsize=(7.2, 3.2), layout="constrained")
    megabytes = [4 * n * n / 1e6 for n in tokens]
    axes.plot(megabytes, ns_per_score, "o-", color=palette.BLUE, lw=1.8)
    axes.set(xscale="log", xlabel="one score matrix, MB", ylabel="ns per score")
    top = 1.2 * max(ns_per_score)
    axes.set_ylim(0, top)
    for level, size in caches.items():
        axes.axvline(size / 1e6, color=palette.DARK, lw=1, ls=":")
        axes.text(size / 1e6, 0.97 * top, f" L{level}", va="top", fontsize=10)
    # where the curve is not: below its floor, and before its last rise
    beside = {511: ((2, -15), "left"), 2044: ((-4, 8), "right")}
    for n, mb, ns in zip(tokens, megabytes, ns_per_score, strict=True):
        if n in beside:
            place, side = beside[n]
            label = axes.annotate(
                f"n = {n:,}", (mb, ns), place, textcoords="offset points", ha=side
            )
            label.set_path_effects([withStroke(linewidth=4, foreground="white")])
    return figure
