"""Draw which test refuses which wrong kernel, and how far each is off (chapter 8)."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from flashlib.plots import palette, svg

WIDTH, HEIGHT = 640, 404
LEFT, TOP, COLUMN, ROW = 168.0, 98.0, 44.0, 25.0
SIZE = 16


def mutation_matrix(state: Mapping[str, object], alt: str) -> str:
    """Draw mutants against lengths, filled where the test refuses.

    Parameters
    ----------
    state : mapping
        As `flashlib.widgets.ch08.matrix_state` computes it.
    alt : str
        The same in words.
    """
    lengths = state["lengths"]
    bottom = TOP + ROW * len(state["caught"])
    body = [
        svg.text(8, 20, state["title"], "start", SIZE, weight="bold"),
        svg.text(8, 43, state["rule"], "start", SIZE),
        svg.text(8, 66, state["count"], "start", SIZE, svg.ORANGE, "bold"),
        svg.text(LEFT - 10, TOP - 8, "length", "end", 15),
    ]
    for x, n in enumerate(lengths):
        weight = "bold" if n in state["bold"] else "normal"
        place = LEFT + (x + 0.5) * COLUMN
        body.append(svg.text(place, TOP - 8, n, size=15, weight=weight))
    for y, (name, caught) in enumerate(state["caught"].items()):
        body += _row(TOP + y * ROW, name, [n in caught for n in lengths])
    for x in range(len(lengths) + 1):
        place = LEFT + x * COLUMN
        body.append(svg.line(place, TOP, place, bottom, svg.FAINT))
    return svg.picture(WIDTH, HEIGHT, body, alt, state)


def _row(y: float, name: str, caught: Sequence[bool]) -> list[str]:
    """Draw one mutant, a box per length that refuses it; survivors say so."""
    alive = not any(caught)
    ink, weight = (svg.ORANGE, "bold") if alive else (svg.INK, "normal")
    right = LEFT + COLUMN * len(caught)
    body = [svg.text(LEFT - 10, y + 18, name, "end", 15, ink, weight)]
    for x, refused in enumerate(caught):
        if refused:
            place = LEFT + x * COLUMN
            body.append(svg.rect(place + 4, y + 4, COLUMN - 8, ROW - 8, svg.BLUE))
    body.append(svg.line(LEFT, y + ROW, right, y + ROW, svg.FAINT))
    if alive:
        body.append(svg.text(right + 10, y + 18, "lives", "start", 15, ink, weight))
    return body


def ruler_figure(
    errors: Mapping[str, float], right: Sequence[str], bars: Mapping[str, float]
) -> Figure:
    """Place kernels on one logarithmic ruler by their largest error.

    Parameters
    ----------
    errors : mapping of str to float
        Largest error of each kernel, in units.
    right : sequence of str
        The kernels among them that are right.
    bars : mapping of str to float
        Where tests draw their line, in units.
    """
    names = sorted(errors, key=errors.get)
    figure, axes = plt.subplots(
        figsize=(6.4, 0.27 * len(names) + 1.1), layout="constrained"
    )
    for y, name in enumerate(names):
        color, marker = (palette.BLUE, "o") if name in right else (palette.ORANGE, "s")
        axes.plot([0.1, errors[name]], [y, y], color=palette.FAINT, linewidth=1)
        axes.plot(errors[name], y, marker, color=color)
    for (label, bar), dash in zip(bars.items(), ("-", "--"), strict=True):
        axes.axvline(bar, color="black", linewidth=1.2, linestyle=dash)
        axes.annotate(
            label, (bar, len(names) - 0.4), (4, 0), textcoords="offset points", size=9
        )
    axes.set_yticks(range(len(names)), names, fontsize=9)
    axes.set_ylim(-0.6, len(names) + 0.4)
    axes.set_xscale("log")
    axes.set_xlim(left=0.5)
    axes.set_xlabel("largest error (units)")
    return figure


def heat_figure(
    counts: np.ndarray, mutants: Sequence[str], topics: Sequence[str]
) -> Figure:
    """Draw how many checks of each topic catch each mutant.

    Parameters
    ----------
    counts : ndarray of int
        ``[mutants, topics]``.
    mutants, topics : sequence of str
        Labels of the rows and of the columns.
    """
    height = 0.19 * len(mutants) + 1.2
    figure, axes = plt.subplots(figsize=(6.4, height), layout="constrained")
    axes.imshow(np.sqrt(counts), cmap="Blues", aspect="auto", vmin=0, vmax=4)
    for y, x in zip(*np.nonzero(counts), strict=True):
        ink = "white" if counts[y, x] > 5 else "black"
        place = {"ha": "center", "va": "center", "fontsize": 8}
        axes.text(x, y, counts[y, x], color=ink, **place)
    axes.set_xticks(range(len(topics)), topics, rotation=40, ha="left", fontsize=9)
    axes.set_yticks(range(len(mutants)), mutants, fontsize=8)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.set_xticks(np.arange(len(topics) + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(len(mutants) + 1) - 0.5, minor=True)
    axes.grid(which="minor", color=palette.FAINT, linewidth=0.6)
    axes.tick_params(which="minor", length=0)
    return figure
