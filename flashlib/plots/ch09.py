"""Draw the ladder under its roof, and the error of an exponential (chapter 9)."""

import math
from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from flashlib.plots import palette, svg

WIDTH, HEIGHT = 640, 372
LEFT, BAR, TOP, ROW = 76.0, 168.0, 66.0, 35.0
ROOF_LEFT, ROOF_RIGHT, BASE = 392.0, 624.0, 306.0
X_FIRST, X_LAST = -1.0, 9.0  # powers of 2, flop per byte
Y_FIRST, Y_LAST = 0.0, math.log10(400)  # powers of 10, Gflop/s
SIZE = 15


def ladder_roof(state: Mapping[str, object], alt: str) -> str:
    """Draw the bars of all rungs, and one rung under the roof.

    Parameters
    ----------
    state : mapping
        As `flashlib.widgets.ch09.ladder_state` computes it.
    alt : str
        The same in words.
    """
    rate = state["rates"][state["rung"]]
    title = f"{state['rung']}: {rate:.1f} Gflop/s on {state['on']}"
    body = [
        svg.text(8, 20, title, "start", SIZE + 1, weight="bold"),
        svg.text(8, 42, state["step"], "start", SIZE),
    ]
    body += [*_bars(state), *_axes(), *_roof(state)]
    return svg.picture(WIDTH, HEIGHT, body, alt, state)


def _bars(state: Mapping[str, object]) -> list[str]:
    """Draw one bar per rung; the chosen one is bold and orange."""
    body, peak = [], state["peak"]
    bottom = TOP + ROW * len(state["rates"])
    for y, (name, rate) in enumerate(state["rates"].items()):
        chosen, place = name == state["rung"], TOP + y * ROW
        weight = "bold" if chosen else "normal"
        color = svg.ORANGE if chosen else svg.BLUE
        wide = max(BAR * rate / peak, 1.5)
        body += [
            svg.text(LEFT - 8, place + 22, name, "end", SIZE, weight=weight),
            svg.rect(LEFT, place + 7, wide, ROW - 14, color),
            svg.text(LEFT + BAR + 12, place + 22, f"{rate:.1f}", "start", SIZE),
        ]
    end = LEFT + BAR
    body.append(svg.line(end, TOP, end, bottom, svg.INK, 2, "5 3"))
    label = f"peak {peak:.0f} Gflop/s"
    body.append(svg.text(end, bottom + 20, label, "end", SIZE))
    share = f"{state['share']:.0%} of the peak"
    if state["ratio"] is not None:
        share += f", {state['ratio']:.2f} × PyTorch"
    body.append(svg.text(8, bottom + 44, share, "start", SIZE, svg.ORANGE, "bold"))
    return body


def _x(intensity: float) -> float:
    share = (math.log2(intensity) - X_FIRST) / (X_LAST - X_FIRST)
    return ROOF_LEFT + share * (ROOF_RIGHT - ROOF_LEFT)


def _y(rate: float) -> float:
    share = (math.log10(max(rate, 1.0)) - Y_FIRST) / (Y_LAST - Y_FIRST)
    return BASE - share * (BASE - TOP)


def _axes() -> list[str]:
    """Draw ticks at powers of 4 and of 10."""
    body = []
    for power in range(-1, 10, 2):
        x = _x(2.0**power)
        body.append(svg.line(x, TOP, x, BASE, svg.FAINT))
        body.append(svg.text(x, BASE + 19, f"{2.0**power:g}", size=SIZE))
    for rate in (1, 10, 100):
        body.append(svg.line(ROOF_LEFT, _y(rate), ROOF_RIGHT, _y(rate), svg.FAINT))
        body.append(svg.text(ROOF_LEFT - 7, _y(rate) + 5, rate, "end", SIZE))
    middle = (ROOF_LEFT + ROOF_RIGHT) / 2
    body.append(svg.text(middle, BASE + 42, "flop per byte", size=SIZE))
    body.append(svg.text(ROOF_RIGHT, TOP - 6, "Gflop/s", "end", SIZE))
    return body


def _roof(state: Mapping[str, object]) -> list[str]:
    """Draw slope and ceiling, the roof over the rung, and the rung."""
    slope, peak = state["bandwidth"], state["peak"]
    first, ridge = 2.0**X_FIRST, peak / slope
    x, roof, rate = (
        _x(state["intensity"]),
        state["roof"],
        state["rates"][state["rung"]],
    )
    points = [(_x(first), _y(first * slope)), (_x(ridge), _y(peak))]
    return [
        svg.polyline([*points, (ROOF_RIGHT, _y(peak))], svg.INK, 2.5),
        svg.line(x, _y(roof), x, _y(rate), svg.GRAY, 1.5),
        svg.circle(x, _y(roof), 7, svg.BLUE),
        svg.rect(x - 6, _y(rate) - 6, 12, 12, svg.ORANGE),
    ]


def error_figure(x: np.ndarray, errors: Mapping[str, np.ndarray]) -> Figure:
    """Plot the error of exponentials over their exponent.

    Parameters
    ----------
    x : ndarray
        Exponents.
    errors : mapping of str to ndarray
        Errors in units of the last place, one for each of `x`, by name.
    """
    colors = (palette.BLUE, palette.ORANGE)
    figure, axes = plt.subplots(
        len(errors), 1, figsize=(6.4, 4.0), sharex=True, layout="constrained"
    )
    for one, (name, units), color in zip(axes, errors.items(), colors, strict=True):
        one.plot(x, units, ".", color=color, markersize=1)
        one.set_title(name, fontsize=10, loc="left")
        one.set_ylabel("error (ulp)")
        one.grid(alpha=0.3)
    axes[-1].set_xlabel("x, of exp(x)")
    return figure
