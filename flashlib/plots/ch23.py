"""Draw the work of two kernels, and the tiles that prefill computes (chapter 23)."""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from flashlib.plots import palette, svg

WIDTH, HEIGHT = 640, 312
TOP, BAR, STEP = 78.0, 22.0, 38.0
CHART = 314.0
LABELS, LONGEST = 92.0, 148.0
COLORS = {
    "HBM traffic": svg.BLUE,
    "turning p": svg.PURPLE,
    "matmul": svg.GREEN,
    "vector": svg.ORANGE,
    "scalar": svg.GRAY,
}
SIZE = 15


def shapes_picture(state: Mapping[str, object], alt: str) -> str:
    """Draw one bar chart for decode and one for prefill.

    Parameters
    ----------
    state : mapping
        As `flashlib.widgets.ch23.shapes_state` computes it.
    alt : str
        The same in words.
    """
    body = [
        *_chart(8.0, "decode", "8 heads, 1 token", state["decode"]),
        *_chart(8.0 + CHART, "prefill", "1 head, all queries", state["prefill"]),
    ]
    return svg.picture(WIDTH, HEIGHT, body, alt, state)


def _chart(left: float, name: str, who: str, kernel: Mapping[str, object]) -> list[str]:
    """Draw the bars of one kernel to a scale of its own."""
    unit = LONGEST / max(kernel["work"].values())
    body = [
        svg.text(left, 22, name, "start", 16, weight="bold"),
        svg.text(left, 46, who, "start", SIZE),
    ]
    for row, (part, micros) in enumerate(kernel["work"].items()):
        y = TOP + STEP * row
        body.append(svg.text(left, y + 16, part, "start", 14))
        x = left + LABELS
        body.append(svg.rect(x, y, max(unit * micros, 1), BAR, COLORS[part]))
        said = f"{micros:.1f}" if micros else "none"
        body.append(svg.text(x + unit * micros + 6, y + 16, said, "start", 14))
    low = TOP + STEP * len(kernel["work"])
    said = f"{kernel['intensity']:g} flop/B, {sum(kernel['products'])} products"
    return [*body, svg.text(left, low + 20, said, "start", SIZE)]


def tile_map(scores: np.ndarray, outputs: np.ndarray) -> Figure:
    """Draw which tiles of keys each group of queries computes.

    Parameters
    ----------
    scores, outputs : ndarray of bool
        ``[groups, tiles]`` of both products.
    """
    figure, axes = plt.subplots(1, 2, figsize=(6.4, 3.0), layout="constrained")
    titles = ("scores, 512 keys at a time", "outputs, 128 keys at a time")
    for ax, done, title in zip(axes, (scores, outputs), titles, strict=True):
        groups, tiles = done.shape
        for group in range(groups):
            for tile in range(tiles):
                fill = palette.BLUE if done[group, tile] else "none"
                corner = (tile / tiles, group)
                box = plt.Rectangle(corner, 1 / tiles, 1, fc=fill, ec="0.6", lw=0.6)
                ax.add_patch(box)
        ax.set(xlim=(0, 1), ylim=(groups, 0), xticks=[], title=title)
        ax.set_xlabel(f"keys: {int(done.sum())} of {done.size} tiles")
        ax.set_ylabel("group of 128 queries")
    return figure
