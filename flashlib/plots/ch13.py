"""Draw margins against disturbances, and how disturbances grow (chapter 13)."""

import math
from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from flashlib.plots import palette, svg

WIDTH, HEIGHT = 640, 470
LEFT, TOP, CELL = 92.0, 66.0, 18.0
# Cells of the two axes: half powers of ten, from 1e-8 and from 1e-4.
RISES, FALLS, LEADS, ENDS = -16, 3, -8, 5
SIZE = 15


def _x(cell: float) -> float:
    return LEFT + (cell - LEADS) * 2 * CELL


def _y(cell: float) -> float:
    return TOP + (FALLS - cell) * CELL


def margin_map(state: Mapping[str, object], alt: str) -> str:
    """Draw a square per cell of the map, and a ring where words change.

    Parameters
    ----------
    state : mapping
        As `flashlib.widgets.ch13.map_state` computes it.
    alt : str
        The same in words.
    """
    count = f"{state['parted']} of {state['texts']} texts part"
    body = [
        svg.text(8, 22, state["change"], "start", 17, weight="bold"),
        svg.text(8, 46, "shift of a rival", "start", SIZE),
        svg.text(WIDTH - 8, 22, count, "end", 17, svg.ORANGE, "bold"),
        *_axes(),
    ]
    most = max(entry[2] for entry in state["cells"])
    for margin, shift, steps, changed in state["cells"]:
        x, y = _x(min(max(margin, LEADS), ENDS - 1)), _y(shift)
        side = 4 + (CELL - 6) * math.log(steps + 1) / math.log(most + 1)
        left, top = x + CELL - side / 2, y - CELL / 2 - side / 2
        body.append(svg.rect(left, top, side, side, svg.BLUE))
        if changed:
            body.append(svg.circle(x + CELL, y - CELL / 2, 10, "none", svg.ORANGE))
            words = svg.text(
                x + 2 * CELL, y - 4, changed, "start", SIZE, svg.ORANGE, "bold"
            )
            body.append(words)
    return svg.picture(WIDTH, HEIGHT, body, alt, state)


def _axes() -> list[str]:
    """Draw powers of ten, and the diagonal where shift and margin are equal."""
    right, bottom = _x(ENDS), _y(RISES)
    body = []
    for cell in range(RISES, FALLS + 1, 4):
        body.append(svg.line(LEFT, _y(cell), right, _y(cell), svg.FAINT))
        label = f"1e{cell // 2}"
        body.append(svg.text(LEFT - 8, _y(cell) + 5, label, "end", SIZE))
    for cell in range(LEADS, ENDS + 1, 4):
        body.append(svg.line(_x(cell), TOP, _x(cell), bottom, svg.FAINT))
        body.append(svg.text(_x(cell), bottom + 20, f"1e{cell // 2}", "middle", SIZE))
    body.append(
        svg.line(_x(LEADS), _y(LEADS), _x(FALLS), _y(FALLS), svg.INK, 1.5, "6 4")
    )
    body.append(svg.text(LEFT + 8, TOP + 22, "a word may change", "start", SIZE))
    body.append(svg.text(right - 8, bottom - 12, "no word can change", "end", SIZE))
    middle = (LEFT + right) / 2
    body.append(svg.text(middle, bottom + 44, "margin of the best word", size=SIZE))
    return body


def depth_figure(curves: Mapping[str, Sequence[float]]) -> Figure:
    """Draw the relative difference of two runs behind every layer; 0 has no mark.

    Parameters
    ----------
    curves : mapping
        A difference per layer, by what is rounded.
    """
    figure, axes = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
    styles = zip(
        (palette.BLUE, palette.ORANGE, palette.GREEN), ("o-", "s--", "^:"), strict=True
    )
    for (name, values), (color, style) in zip(curves.items(), styles, strict=True):
        layers = range(1, len(values) + 1)
        seen = [value or float("nan") for value in values]
        axes.semilogy(layers, seen, style, color=color, markersize=4, label=name)
    axes.set_xlabel("layer")
    axes.set_ylabel("difference, relative")
    axes.legend(frameon=False, loc="center right")
    axes.spines[["top", "right"]].set_visible(False)
    return figure
