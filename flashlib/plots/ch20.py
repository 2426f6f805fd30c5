"""Draw a block of keys, the columns that move past it, and their bytes (chapter 20)."""

import math
from collections.abc import Mapping

from flashlib.plots import svg

WIDTH, HEIGHT = 640, 330
BLOCK_X, TOP, SIDE = 20.0, 42.0, 84.0
STRIP_X, STRIP = 176.0, 440.0
BANK = 512
BARS_X, BARS_END, BARS_TOP = 176.0, 530.0, 196.0
MOST = 2**24
SIZE = 15


def heads_picture(state: Mapping[str, object], alt: str) -> str:
    """Draw what stands still, what moves, and five bars on a logarithmic scale.

    Parameters
    ----------
    state : mapping
        As `flashlib.widgets.ch20.heads_state` computes it.
    alt : str
        The same in words.
    """
    body = [*_columns(state)]
    body += _refusal() if state["refused"] else _bars(state)
    return svg.picture(WIDTH, HEIGHT, body, alt, dict(state))


def _columns(state: Mapping[str, object]) -> list[str]:
    """Draw the block of keys and the columns, cut where partitions end."""
    columns, unit = state["columns"], STRIP / BANK
    wide = unit * min(columns, BANK)
    color = svg.RED if state["refused"] else svg.ORANGE
    word = "column" if columns == 1 else "columns"
    body = [
        svg.text(BLOCK_X, 26, "stands still", "start", SIZE, weight="bold"),
        svg.text(STRIP_X, 26, f"moves: {columns:,} {word}", "start", SIZE),
        svg.rect(BLOCK_X, TOP, SIDE, SIDE, svg.BLUE, opacity=0.3),
        svg.rect(BLOCK_X, TOP, SIDE, SIDE, "none", svg.BLUE),
        svg.text(BLOCK_X + SIDE / 2, TOP + 38, "K", size=20, weight="bold"),
        svg.text(BLOCK_X + SIDE / 2, TOP + 62, "128 keys", size=14),
        svg.text(STRIP_X - 36, TOP + 50, "←", size=24),
        svg.rect(STRIP_X, TOP, STRIP, SIDE, "none", svg.GRAY),
        svg.rect(STRIP_X, TOP, max(wide, 1), SIDE, color, opacity=0.5),
    ]
    for cut in (128, 256, 384):
        x = STRIP_X + unit * cut
        body.append(svg.line(x, TOP - 4, x, TOP + SIDE + 4, svg.INK, 1, "4 4"))
        body.append(svg.text(x, TOP + SIDE + 20, cut, size=13))
    body.append(svg.text(STRIP_X + STRIP, TOP + SIDE + 20, "512", "end", 13))
    return body


def _refusal() -> list[str]:
    """Say that a bank is full, in the place of the bars."""
    words = "refused: one bank holds 512 columns"
    return [svg.text(STRIP_X, BARS_TOP + 50, words, "start", 20, svg.RED, "bold")]


def _bars(state: Mapping[str, object]) -> list[str]:
    """Draw bytes; a factor of 16 is one tick."""
    rows = (
        ("K and V", "loaded", svg.BLUE),
        ("a copy per head", "copied", svg.GRAY),
        ("scores", "scores", svg.ORANGE),
        ("exponentials", "exponentials", svg.ORANGE),
        ("mask", "mask", svg.ORANGE),
    )
    body = []
    for i, (label, key, color) in enumerate(rows):
        y = BARS_TOP + 26 * i
        share = math.log2(state[key]) / math.log2(MOST)
        wide = (BARS_END - BARS_X) * share
        body += [
            svg.text(BARS_X - 12, y + 15, label, "end", SIZE),
            svg.rect(BARS_X, y, wide, 19, color, opacity=0.6),
            svg.text(BARS_X + wide + 8, y + 15, f"{state[key]:,}", "start", SIZE),
        ]
    body.append(svg.text(BLOCK_X, BARS_TOP - 16, "bytes", "start", SIZE, weight="bold"))
    scale = "(bars on a logarithmic scale)"
    body.append(svg.text(BARS_X, BARS_TOP - 16, scale, "start", 13))
    return body
