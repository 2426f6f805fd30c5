"""Draw bytes as bars over a logarithmic axis, for the two-minute tour (book)."""

import math
from collections.abc import Mapping

from flashlib.plots import svg

# As wide as a phone, so that the values need no scrolling; a wide page shows it larger.
WIDTH, HEIGHT, SCALE = 350, 168, 1.8
LEFT, RIGHT = 4.0, 346.0
DECADES = 10  # from 1 B to 10 GB
TICKS = {0: "1 B", 3: "1 kB", 6: "1 MB", 9: "1 GB"}
SIZE = 13
TOP, PITCH, TALL = 16, 48, 26


def bytes_on_a_log_scale(state: Mapping[str, object], alt: str) -> str:
    """Draw the score matrix of one head above the two buffers that replace it.

    Parameters
    ----------
    state : mapping
        ``tokens``, ``matrix_bytes``, ``tile_bytes``, ``numerator_bytes`` and
        ``ratio``, as `flashlib.widgets.tour` computes them.
    alt : str
        The same in words.
    """
    n = state["tokens"]
    bars = [
        (f"score matrix, {n:,} × {n:,}", "matrix_bytes", svg.ORANGE),
        ("one tile of scores", "tile_bytes", svg.BLUE),
        ("running numerator of one row", "numerator_bytes", svg.BLUE),
    ]
    body = _ticks(HEIGHT - 6)
    for place, (label, key, color) in enumerate(bars):
        body += _bar(TOP + PITCH * place, label, state[key], color)
    return svg.picture(WIDTH, HEIGHT, body, alt, state, SCALE)


def _ticks(base: float) -> list[str]:
    """Write the labels of the axis with their base line at `base`."""
    return [
        svg.text(_place(10**decade), base, words, "middle" if decade else "start", SIZE)
        for decade, words in TICKS.items()
    ]


def _bar(top: float, label: str, nbytes: int, color: str) -> list[str]:
    """Draw one label, one line per decade, and one bar that starts at 1 B."""
    body = [
        svg.text(LEFT, top - 3, label, anchor="start", size=SIZE),
        svg.text(RIGHT, top - 3, f"{nbytes:,} B", anchor="end", size=SIZE),
    ]
    for decade in range(DECADES + 1):
        x, gray = _place(10**decade), svg.GRAY if decade in TICKS else svg.FAINT
        body.append(svg.line(x, top + 2, x, top + 2 + TALL, stroke=gray))
    body.append(svg.rect(LEFT, top + 6, _place(nbytes) - LEFT, TALL - 8, fill=color))
    return body


def _place(nbytes: float) -> float:
    """Return the x coordinate of a number of bytes."""
    return LEFT + (RIGHT - LEFT) * math.log10(nbytes) / DECADES
