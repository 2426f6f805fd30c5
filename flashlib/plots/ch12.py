"""Draw two times against each other, and maps of who wins (chapter 12)."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure

from flashlib.plots import svg

WIDTH, HEIGHT = 640, 372
LEFT, LONGEST, UNIT = 14.0, 262.0, 4.0
MAP_LEFT, MAP_TOP, COLUMN, ROW = 380.0, 84.0, 35.0, 27.0


def scales(state: Mapping[str, object], alt: str) -> str:
    """Draw both times as bars, and the map of verdicts with the present point.

    Parameters
    ----------
    state : mapping
        As `flashlib.widgets.ch12.scales_state` computes it.
    alt : str
        The same in words.
    """
    verdict = "streaming wins" if state["wins"] else "the matrix wins"
    matrix, streaming = 1 + state["traffic"], state["streaming"]
    scale = LONGEST / max(UNIT, matrix, streaming)
    body = [
        svg.text(8, 22, verdict, "start", 18, svg.ORANGE, "bold"),
        svg.text(8, 46, f"streaming wins above {state['edge']:.2f}", "start", 15),
        svg.text(LEFT, 96, f"matrix: {matrix:.2f}", "start", 15, weight="bold"),
        svg.rect(LEFT, 106, scale, 40, svg.BLUE),
        svg.rect(LEFT + scale, 106, scale * state["traffic"], 40, "none", svg.BLUE),
        svg.text(LEFT, 168, "arithmetic 1,", "start", 14),
        svg.text(LEFT + 92, 168, f"traffic {state['traffic']:.2f}", "start", 14),
        svg.text(LEFT, 222, f"streaming: {streaming:.2f}", "start", 15, weight="bold"),
        svg.rect(LEFT, 232, scale * streaming, 40, svg.ORANGE),
        svg.text(LEFT, 294, "half the pairs, no traffic", "start", 14),
        *_map(state),
    ]
    shown = {name: x for name, x in state.items() if not isinstance(x, list)}
    return svg.picture(WIDTH, HEIGHT, body, alt, shown)


def _map(state: Mapping[str, object]) -> list[str]:
    """Draw a column per balance, filled from the break-even ratio upwards."""
    ratios, balances = state["ratios"], state["balances"]
    bottom = MAP_TOP + ROW * len(ratios)
    right = MAP_LEFT + COLUMN * len(balances)
    body = [
        svg.text(MAP_LEFT - 44, MAP_TOP - 34, "compute ratio", "start", 14),
        svg.text(right, bottom + 42, "operations per byte", "end", 14),
        svg.rect(
            MAP_LEFT, MAP_TOP, right - MAP_LEFT, bottom - MAP_TOP, "none", svg.FAINT
        ),
    ]
    for x, (balance, lost) in enumerate(zip(balances, state["from"], strict=True)):
        left, high = MAP_LEFT + x * COLUMN, ROW * (len(ratios) - lost)
        body.append(svg.rect(left + 1, MAP_TOP, COLUMN - 2, high, svg.ORANGE))
        body.append(svg.text(left + COLUMN / 2, bottom + 20, balance, size=14))
    for y, ratio in enumerate(reversed(ratios)):
        base = MAP_TOP + (y + 0.5) * ROW + 5
        body.append(svg.text(MAP_LEFT - 6, base, f"{ratio:g}", "end", 14))
    x = MAP_LEFT + (balances.index(state["balance"]) + 0.5) * COLUMN
    y = bottom - (ratios.index(state["ratio"]) + 0.5) * ROW
    body.append(svg.circle(x, y, 8, svg.PAPER, svg.INK))
    body.append(svg.circle(x, y, 4, svg.INK))
    return body


def verdict_figure(
    ratios: np.ndarray, rungs: Sequence[str], lengths: Sequence[int], opponent: str
) -> Figure:
    """Draw how many times as fast as the matrix each rung is at each length.

    Parameters
    ----------
    ratios : ndarray
        ``[rungs, lengths]``, above 1 where the rung wins.
    rungs, lengths : sequence
        Labels of the rows and of the columns.
    opponent : str
        Whose time is divided.
    """
    height = 0.36 * len(rungs) + 1.1
    figure, axes = plt.subplots(figsize=(6.4, height), layout="constrained")
    norm = TwoSlopeNorm(0, vmin=-3, vmax=3)
    axes.imshow(np.log2(ratios), cmap="PuOr_r", norm=norm, aspect="auto")
    for (y, x), ratio in np.ndenumerate(ratios):
        ink = "white" if abs(np.log2(ratio)) > 1.5 else "black"
        weight = "bold" if ratio > 1 else "normal"
        style = {"ha": "center", "va": "center", "fontsize": 9, "fontweight": weight}
        axes.text(x, y, f"{ratio:.2g}", color=ink, **style)
    axes.set_xticks(range(len(lengths)), [f"{n:,}" for n in lengths])
    axes.set_yticks(range(len(rungs)), rungs)
    axes.set_xlabel(f"tokens (times as fast as {opponent}; bold: faster)")
    axes.tick_params(length=0)
    return figure
