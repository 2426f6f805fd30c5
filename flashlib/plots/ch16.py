"""Draw the roofline of decode, and work over the number of columns (chapter 16)."""

import math
from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from flashlib.plots import palette, svg

WIDTH, HEIGHT = 640, 352
LEFT, RIGHT, TOP, BASE = 58.0, 372.0, 44.0, 300.0
X_FIRST, X_LAST = 0.0, 10.0  # powers of 2, flop per byte
Y_FIRST, Y_LAST = -1.0, 2.0  # powers of 10, Tflop/s
BARS_LEFT, BARS_RIGHT = 410.0, 632.0
SIZE = 15


def roofline(state: Mapping[str, object], alt: str) -> str:
    """Draw one decode step under the roof, and the work of each engine.

    Parameters
    ----------
    state : mapping
        As `flashlib.widgets.ch16.roofline_state` computes it.
    alt : str
        The same in words.
    """
    body = [*_axes(), *_roof(state), *_points(state), *_bars(state)]
    keys = ("group", "tokens", "intensity", "roof", "reached", "bound")
    return svg.picture(WIDTH, HEIGHT, body, alt, {key: state[key] for key in keys})


def _x(intensity: float) -> float:
    share = (math.log2(intensity) - X_FIRST) / (X_LAST - X_FIRST)
    return LEFT + share * (RIGHT - LEFT)


def _y(speed: float) -> float:
    share = (math.log10(speed) - Y_FIRST) / (Y_LAST - Y_FIRST)
    return BASE - share * (BASE - TOP)


def _axes() -> list[str]:
    """Draw ticks at powers of 4 and of 10."""
    body = [svg.text(LEFT - 50, 20, "Tflop/s", "start", SIZE)]
    for power in range(0, 11, 2):
        x = _x(2.0**power)
        body.append(svg.line(x, TOP, x, BASE, svg.FAINT))
        label = f"{2**power:,}"
        body.append(svg.text(x, BASE + 19, label, size=SIZE))
    for power in range(-1, 3):
        y = _y(10.0**power)
        body.append(svg.line(LEFT, y, RIGHT, y, svg.FAINT))
        body.append(svg.text(LEFT - 7, y + 5, f"{10.0**power:g}", "end", SIZE))
    middle = (LEFT + RIGHT) / 2
    body.append(svg.text(middle, HEIGHT - 8, "flop per byte of cache", size=SIZE))
    return body


def _roof(state: Mapping[str, object]) -> list[str]:
    """Draw the slope of the loads and the ceiling of the square."""
    slope = state["bandwidth"] / 1000
    peak, ridge = state["peak"], state["peak"] / slope
    points = [
        (_x(1.0), _y(slope)),
        (_x(ridge), _y(peak)),
        (RIGHT, _y(peak)),
    ]
    label = f"ridge {state['ridge']:.0f}"
    return [
        svg.polyline(points, svg.INK, 2.5),
        svg.line(_x(ridge), _y(peak), _x(ridge), BASE, svg.GRAY, 1.0, "4 4"),
        svg.text(_x(ridge) - 6, BASE - 10, label, "end", SIZE, svg.GRAY),
    ]


def _points(state: Mapping[str, object]) -> list[str]:
    """Draw the step at its intensity: under the roof, and as the engines leave it."""
    x, roof, reached = _x(state["intensity"]), state["roof"], state["reached"]
    return [
        svg.line(x, _y(roof), x, _y(reached), svg.GRAY, 1.5),
        svg.circle(x, _y(roof), 7, svg.BLUE),
        svg.rect(x - 6, _y(reached) - 6, 12, 12, svg.ORANGE),
    ]


def _bars(state: Mapping[str, object]) -> list[str]:
    """Draw how long each engine works; the scale is the longest of them."""
    count = state["columns"]
    title = f"{count} column{'s' if count > 1 else ''}, µs of work"
    body = [svg.text(BARS_LEFT, 20, title, "start", SIZE, weight="bold")]
    longest = max(state["times"].values())
    for i, (name, time) in enumerate(state["times"].items()):
        y = 52 + i * 70.0
        bold = "bold" if name == state["bound"] else "normal"
        color = svg.ORANGE if name == state["bound"] else svg.BLUE
        wide = (BARS_RIGHT - BARS_LEFT) * time / longest
        body.append(svg.text(BARS_LEFT, y, name, "start", SIZE, weight=bold))
        body.append(svg.text(BARS_RIGHT, y, f"{time:.2f}", "end", SIZE, weight=bold))
        body.append(svg.rect(BARS_LEFT, y + 8, max(wide, 1.5), 20, color))
    return body


def crossing_figure(
    columns: Sequence[int], times: Mapping[str, Sequence[float]]
) -> Figure:
    """Plot the work of each engine over the number of columns.

    Parameters
    ----------
    columns : sequence of int
        Query heads of a group times new tokens.
    times : mapping of str to sequence of float
        Microseconds of work by name, one for each entry of `columns`.
    """
    looks = (
        (palette.DARK, "s", "-"),
        (palette.ORANGE, "^", "-"),
        (palette.BLUE, "o", "-"),
        (palette.GRAY, "x", "--"),
    )
    figure, axes = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    for (name, values), (color, marker, dash) in zip(times.items(), looks, strict=True):
        axes.plot(columns, values, color=color, marker=marker, ls=dash, label=name)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(columns, [str(c) for c in columns])
    axes.set_xlabel("columns: query heads of the group × new tokens")
    axes.set_ylabel("microseconds of work")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    return figure
