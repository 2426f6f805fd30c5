"""Draw calls of operations before and after, and their shares (chapter 10)."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from flashlib.plots import palette, svg

WIDTH, TOP, ROW = 640, 66.0, 52.0
LEFT, RIGHT = 212.0, 570.0
SIZE = 15


def histogram_picture(state: Mapping[str, object], alt: str) -> str:
    """Draw two bars per operation, before above after.

    Parameters
    ----------
    state : mapping
        As `flashlib.widgets.ch10.histogram_state` traces it.
    alt : str
        The same in words.
    """
    rows = state["rows"]
    title = f"layers: {state['layers']}, new tokens: {state['tokens']}"
    body = [
        svg.text(8, 22, title, "start", 17, weight="bold"),
        svg.rect(8, 36, 14, 14, svg.BLUE),
        svg.text(28, 48, "before: score matrices", "start", SIZE),
        *_striped(224, 36, 14, 14),
        svg.text(244, 48, "after: streaming", "start", SIZE),
    ]
    unit = (RIGHT - LEFT) / state["most"]
    for n, (name, before, after) in enumerate(rows):
        y = TOP + n * ROW
        body += [
            svg.text(LEFT - 10, y + 26, name, "end", SIZE),
            svg.rect(LEFT, y + 2, before * unit, 17, svg.BLUE),
            svg.text(LEFT + before * unit + 6, y + 16, f"{before:,}", "start", SIZE),
            *_striped(LEFT, y + 22, after * unit, 17),
            svg.text(LEFT + after * unit + 6, y + 36, f"{after:,}", "start", SIZE),
        ]
    bottom = TOP + ROW * len(rows)
    body.append(svg.line(LEFT, TOP - 4, LEFT, bottom - 6, svg.GRAY))
    return svg.picture(WIDTH, bottom, body, alt, state)


def _striped(x: float, y: float, width: float, height: float) -> list[str]:
    """Draw a bar that is told apart without its color."""
    body = [svg.rect(x, y, width, height, svg.ORANGE)]
    body += [
        svg.line(x + dx, y + 1, x + dx, y + height - 1, svg.PAPER, 1.5)
        for dx in range(4, int(width) - 1, 7)
    ]
    return body


def shares_figure(
    shares: Mapping[str, tuple[float, float]], labels: Sequence[str]
) -> Figure:
    """Draw shares of a whole as two-part bars.

    Parameters
    ----------
    shares : mapping
        Two shares by what they are shares of; together at most 1.
    labels : sequence of str
        What the two are.
    """
    figure, axes = plt.subplots(figsize=(6.4, 2.6), layout="constrained")
    for y, (first, second) in enumerate(reversed(list(shares.values()))):
        axes.barh(y, first, 0.6, color=palette.BLUE, label=labels[0] if not y else None)
        axes.barh(
            y,
            second,
            0.6,
            left=first,
            color="white",
            edgecolor=palette.ORANGE,
            hatch="///",
            label=labels[1] if not y else None,
        )
        _number(axes, y, first)
    axes.set_yticks(range(len(shares)), list(shares)[::-1])
    axes.set_xlim(0, 1)
    axes.set_xticks([])
    axes.spines[["top", "right", "bottom"]].set_visible(False)
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False)
    return figure


def _number(axes: Axes, y: float, first: float) -> None:
    """Write a share into its own part of a bar, or right behind it on paper."""
    inside = first > 0.2
    axes.text(
        first - 0.01 if inside else first + 0.015,
        y,
        f"{first:.1%}",
        ha="right" if inside else "left",
        va="center",
        color="white" if inside else palette.BLUE,
        weight="bold",
        bbox=None if inside else {"facecolor": "white", "edgecolor": "none"},
    )
