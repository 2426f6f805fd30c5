"""Draw a causal mask as data and as a loop bound, and its tiles (chapter 6)."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from flashlib.plots import palette, svg

WIDTH, HEIGHT = 640, 346
LEFT, TOP, CELL = 122.0, 52.0, 34.0
TABLE, TABLE_END = 372.0, 634.0
SIZE = 16
KINDS = {"live": (palette.BLUE, "white"), "partial": (palette.YELLOW, "black")}


def mask_grid(state: Mapping[str, object], alt: str) -> str:
    """Draw who meets whom, and count what that costs.

    Parameters
    ----------
    state : mapping
        As `flashlib.widgets.ch06.mask_state` computes it.
    alt : str
        The same in words.
    """
    body = [svg.text(LEFT, 20, state["title"], "start", SIZE, weight="bold")]
    for j in range(state["seq_k"]):
        body.append(svg.text(LEFT + (j + 0.5) * CELL, TOP - 8, j, size=SIZE))
    body.append(svg.text(LEFT - 14, TOP - 8, "key", "end", SIZE))
    for i, (end, met) in enumerate(zip(state["ends"], state["met"], strict=True)):
        body += _row(i, end, met, state)
    return svg.picture(WIDTH, HEIGHT, body + _table(state), alt, state)


def _row(i: int, end: int, met: int, state: Mapping[str, object]) -> list[str]:
    """Draw one query: attended keys, masked keys, keys that are never met."""
    y = TOP + i * CELL
    position = i + state["seq_k"] - state["seq_q"]
    label = f"row {i} at {position}".replace("-", "−")
    body = [svg.text(LEFT - 14, y + 22, label, "end", SIZE)]
    for j in range(state["seq_k"]):
        x = LEFT + j * CELL + 2
        if j < end:
            body.append(svg.rect(x, y + 2, CELL - 4, CELL - 4, svg.BLUE))
        elif j < met:
            body.append(svg.rect(x, y + 2, CELL - 4, CELL - 4, "none", svg.ORANGE))
            body.append(svg.text(x + 15, y + 22, "−∞", size=14, fill=svg.ORANGE))
        else:
            body.append(
                svg.rect(x, y + 2, CELL - 4, CELL - 4, "none", svg.FAINT, "3 3")
            )
    if end and state["way"] != "data":
        x = LEFT + end * CELL
        body.append(svg.line(x, y + 1, x, y + CELL - 1, svg.INK, 3))
    return body


def _table(state: Mapping[str, object]) -> list[str]:
    """Write the counts as label and value."""
    body, y = [svg.line(TABLE - 18, 8, TABLE - 18, HEIGHT - 12, svg.FAINT)], 20.0
    for label, value in state["lines"]:
        weight = "normal" if value else "bold"
        body.append(svg.text(TABLE, y, label, "start", SIZE, weight=weight))
        body.append(svg.text(TABLE_END, y, value, "end", SIZE))
        y += 30
    return body


def tiles_figure(kinds: Sequence[Sequence[str]]) -> Figure:
    """Draw the tiles of a causal score matrix by kind.

    Parameters
    ----------
    kinds : sequence of sequence of str
        ``"live"``, ``"partial"`` or ``"dead"`` for each tile, first row of tiles
        first.
    """
    size = len(kinds)
    figure, axes = plt.subplots(figsize=(4.6, 4.6), layout="constrained")
    for i, row in enumerate(kinds):
        for j, kind in enumerate(row):
            fill, ink = KINDS.get(kind, ("white", palette.DARK))
            cell = plt.Rectangle((j, i), 1, 1, facecolor=fill, edgecolor=palette.GRAY)
            axes.add_patch(cell)
            axes.text(
                j + 0.5, i + 0.5, kind, color=ink, ha="center", va="center", size=9
            )
    axes.set(xlim=(0, size), ylim=(size, 0), aspect="equal")
    axes.set_xticks(np.arange(size) + 0.5, np.arange(size))
    axes.set_yticks(np.arange(size) + 0.5, np.arange(size))
    axes.set_xlabel("tile of keys")
    axes.set_ylabel("tile of queries")
    axes.tick_params(length=0)
    return figure
