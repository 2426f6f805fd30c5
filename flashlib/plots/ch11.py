"""Draw times in two parts, and where a gain saturates (chapter 11)."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from flashlib.plots import palette, svg

WIDTH, HEIGHT = 640, 350
TOP, BOTTOM = 78.0, 306.0
BAR, FIRST, SECOND = 76.0, 60.0, 166.0
PLOT_LEFT, PLOT_RIGHT = 400.0, 622.0


def _y(percent: float) -> float:
    return BOTTOM - percent / 100 * (BOTTOM - TOP)


def two_bars(state: Mapping[str, object], alt: str) -> str:
    """Draw the bars before and after, and the savings over all lengths.

    Parameters
    ----------
    state : mapping
        As `flashlib.widgets.ch11.gain_state` computes it.
    alt : str
        The same in words.
    """
    quoted = "quoted" if state["quoted"] else "by the fit"
    floor = 100 - state["limit"]
    body = [
        svg.text(
            8,
            20,
            f"{state['backend']}, {state['n']:,} tokens ({quoted})",
            "start",
            16,
            weight="bold",
        ),
        svg.text(
            8,
            44,
            f"saved {state['saved']:.1f}%, never more than {state['limit']:.1f}%",
            "start",
            16,
            svg.ORANGE,
            "bold",
        ),
        *_bar(FIRST, "before", state["before"]),
        *_bar(SECOND, "after", state["after"]),
        svg.line(FIRST - 12, BOTTOM, SECOND + BAR + 12, BOTTOM),
        svg.line(SECOND - 12, _y(floor), 318, _y(floor), svg.ORANGE, 1.5, "6 4"),
        svg.text(318, _y(floor) - 6, "limit", "end", 14, svg.ORANGE),
        *_savings(state),
    ]
    return svg.picture(WIDTH, HEIGHT, body, alt, state)


def _bar(x: float, name: str, parts: Sequence[float]) -> list[str]:
    """Draw the linear part as a frame and the square part, filled, on top of it."""
    linear, square = parts
    body = [
        svg.rect(x, _y(linear), BAR, BOTTOM - _y(linear), "none", svg.INK, "4 3"),
        svg.rect(x, _y(linear + square), BAR, _y(0) - _y(square), svg.BLUE),
        svg.text(x + BAR / 2, BOTTOM + 20, name, size=15),
    ]
    if linear > 9:
        body.append(svg.text(x + BAR / 2, _y(linear / 2) + 5, "linear", size=14))
    if square > 9:
        middle = _y(linear + square / 2) + 5
        body.append(svg.text(x + BAR / 2, middle, "square", size=14, fill=svg.PAPER))
    return body


def _savings(state: Mapping[str, object]) -> list[str]:
    """Draw what is saved against the length, one step per doubling."""
    values, count = state["savings"], len(state["savings"])
    step = (PLOT_RIGHT - PLOT_LEFT) / (count - 1)

    def at(i: int) -> tuple[float, float]:
        return PLOT_LEFT + i * step, BOTTOM - values[i] / 60 * (BOTTOM - TOP)

    roof = BOTTOM - state["limit"] / 60 * (BOTTOM - TOP)
    here = min(range(count), key=lambda i: abs(values[i] - state["saved"]))
    x, y = at(here)
    return [
        svg.line(PLOT_LEFT, BOTTOM, PLOT_RIGHT, BOTTOM),
        svg.line(PLOT_LEFT, roof, PLOT_RIGHT, roof, svg.ORANGE, 1.5, "6 4"),
        svg.text(PLOT_LEFT, roof - 6, "limit", "start", 14, svg.ORANGE),
        svg.polyline([at(i) for i in range(count)], svg.BLUE, 2),
        svg.circle(x, y, 6, svg.BLUE, svg.INK),
        svg.text(x, y + 24, f"{state['saved']:.0f}%", "middle", 14),
        svg.text(PLOT_LEFT, BOTTOM + 20, "64", "start", 14),
        svg.text(PLOT_RIGHT, BOTTOM + 20, "32,704 tokens", "end", 14),
        svg.text(PLOT_LEFT, TOP - 12, "saved", "start", 14),
    ]


def ablation_figure(
    times: Mapping[str, Mapping[str, float]], lengths: Sequence[str]
) -> Figure:
    """Draw the time of each path per pair of the square, a group per length.

    Parameters
    ----------
    times : mapping of str to mapping
        Milliseconds by path and length.
    lengths : sequence of str
        Which lengths, as the keys of `times` write them.
    """
    figure, axes = plt.subplots(figsize=(6.4, 3.0), layout="constrained")
    colors = (palette.BLUE, palette.ORANGE, palette.BLUE, palette.ORANGE)
    width, first = 0.19, next(iter(times))
    for i, (name, by_length) in enumerate(times.items()):
        values = [100 * by_length[n] / times[first][n] for n in lengths]
        place = np.arange(len(lengths)) + (i - 1.5) * width
        hatch = "//" if "triangle" in name else ""
        style = {"edgecolor": "white", "hatch": hatch, "color": colors[i]}
        axes.bar(place, values, 0.9 * width, label=name, **style)
    axes.axhline(50, color=palette.DARK, linewidth=1, linestyle="--")
    axes.set_xticks(range(len(lengths)), [f"{int(n):,} tokens" for n in lengths])
    axes.set_ylabel("% of matrix, square")
    axes.set_ylim(0, 175)
    axes.legend(ncols=2, fontsize=9, frameon=False, loc="upper center")
    return figure
