"""Draw the running state of a row, and errors over the size of scores (chapter 4)."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from flashlib.plots import palette, svg

WIDTH, HEIGHT = 640, 400
LEFT, STEP, BAR = 24.0, 61.0, 42.0
SCORE_BASE, SCORE_UNIT = 176.0, 23.0
P_BASE, P_UNIT = 338.0, 92.0
TABLE, TABLE_END = 412.0, 634.0
SIZE = 16


def scrubber(state: Mapping[str, object], alt: str) -> str:
    """Draw the scores, the terms against the running max, and the state beside them.

    Parameters
    ----------
    state : mapping
        As `flashlib.widgets.ch04.scrubber_state` computes it.
    alt : str
        The same in words.
    """
    body = _scores(state) + _terms(state) + _table(state)
    return svg.picture(WIDTH, HEIGHT, body, alt, state)


def _scores(state: Mapping[str, object]) -> list[str]:
    """Draw one bar per score: filled once read, and the running max as a line."""
    body = [svg.text(LEFT - 8, 20, "scores", "start", SIZE, weight="bold")]
    for place, score in enumerate(state["scores"]):
        x, top = _left(place), SCORE_BASE - max(score * SCORE_UNIT, 2)
        seen, newest = place < state["read"], place == state["read"] - 1
        fill = svg.ORANGE if newest else svg.BLUE if seen else "none"
        dash, edge = ("", "none") if seen else ("4 3", svg.GRAY)
        body.append(svg.rect(x, top, BAR, SCORE_BASE - top, fill, edge, dash))
        body.append(svg.text(x + BAR / 2, top - 6, f"{score:g}", size=SIZE))
    if state["m"] is not None:
        y = SCORE_BASE - max(state["m"] * SCORE_UNIT, 2)
        end = LEFT + 6 * STEP - 18
        body.append(svg.line(LEFT - 8, y, end, y, svg.INK, 1.5, "7 4"))
        body.append(svg.text(end + 4, y + 5, "m", "start", SIZE, weight="bold"))
    return body


def _terms(state: Mapping[str, object]) -> list[str]:
    """Draw the terms against the new max; dashed, what they were against the old."""
    body = [
        svg.text(LEFT - 8, 220, "terms p = exp(s − m)", "start", SIZE, weight="bold"),
        svg.line(LEFT - 8, P_BASE, LEFT + 6 * STEP - 10, P_BASE, svg.GRAY),
    ]
    for place, p in enumerate(state["p"]):
        x, newest = _left(place), place == state["read"] - 1
        if place < len(state["p_before"]) and state["rescaled"]:
            old = P_UNIT * state["p_before"][place]
            body.append(svg.rect(x, P_BASE - old, BAR, old, "none", svg.GRAY, "4 3"))
        fill = svg.ORANGE if newest else svg.BLUE
        body.append(svg.rect(x, P_BASE - P_UNIT * p, BAR, P_UNIT * p, fill))
        body.append(svg.text(x + BAR / 2, P_BASE + 19, f"{p:.3f}", size=SIZE))
    for place in range(len(state["scores"])):
        label = f"key {state['keys'][place]}"
        body.append(svg.text(_left(place) + BAR / 2, P_BASE + 40, label, size=SIZE))
    return body


def _table(state: Mapping[str, object]) -> list[str]:
    """Write the state as label and value, one line each."""
    body = [svg.line(TABLE - 14, 8, TABLE - 14, HEIGHT - 12, svg.FAINT)]
    y = 20.0
    for label, value in state["lines"]:
        if not value:
            body.append(svg.text(TABLE, y, label, "start", SIZE, weight="bold"))
        else:
            body.append(svg.text(TABLE, y, label, "start", SIZE))
            body.append(svg.text(TABLE_END, y, value, "end", SIZE))
        y += 27 if value else 25
    return body


def _left(place: int) -> float:
    return LEFT + place * STEP


def heat_figure(tops: Sequence[float], errors: Mapping[str, Sequence[float]]) -> Figure:
    """Plot the error of two ways against the largest score, in units of float32.

    Parameters
    ----------
    tops : sequence of float
        Largest score of each run.
    errors : mapping of str to sequence of float
        Largest error of each of two ways, in units of the last place.
    """
    figure, axes = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    axes.plot(
        tops, tops, color=palette.GRAY, linewidth=1, label="error = largest score"
    )
    looks = ((palette.BLUE, "o", "-"), (palette.ORANGE, "s", "--"))
    for (name, values), (color, marker, dash) in zip(
        errors.items(), looks, strict=True
    ):
        axes.plot(tops, values, color=color, marker=marker, linestyle=dash, label=name)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    axes.set_xlabel("largest score")
    axes.set_ylabel("largest error (units)")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    return figure
