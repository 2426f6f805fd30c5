"""Draw the array while it sums, and rounding over the mean of V (chapter 17)."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from flashlib.plots import palette, svg

WIDTH, HEIGHT = 640, 348
UNIT = 1.5  # pixels per row or column of the array
LEFT, TOP, SIDE = 226.0, 58.0, 192.0
TABLE, TABLE_END = 448.0, 632.0
SIZE = 15


def array_picture(state: Mapping[str, object], alt: str) -> str:
    """Draw what stands in the array, what moves into it and what falls out.

    Parameters
    ----------
    state : mapping
        As `flashlib.widgets.ch17.array_state` computes it.
    alt : str
        The same in words.
    """
    body = [*_still(state), *_moving(state), *_result(state), *_table(state)]
    keys = ("way", "columns", "cycles", "added", "products", "lands")
    return svg.picture(WIDTH, HEIGHT, body, alt, {key: state[key] for key in keys})


def _still(state: Mapping[str, object]) -> list[str]:
    """Draw the array and its occupied columns."""
    rows, columns = state["still"]
    lit = state["lit"]
    color = {"ones stationary": svg.ORANGE, "ones moving": svg.BLUE}
    fill = color.get(state["way"], svg.GRAY)
    wide = UNIT * (lit[0] if lit else columns)
    body = [
        svg.text(LEFT, 20, "stands still", "start", SIZE, weight="bold"),
        svg.text(LEFT, 44, _name(state, "still"), "start", SIZE),
        svg.rect(LEFT, TOP, wide, UNIT * rows, fill, opacity=0.45),
        svg.rect(LEFT, TOP, SIDE, SIDE, "none", svg.INK),
    ]
    if lit:
        body.append(svg.rect(LEFT + UNIT * lit[0], TOP, 4, SIDE, svg.ORANGE))
        body.append(svg.text(LEFT + UNIT * lit[0] + 10, TOP + 22, "ones", "start", 14))
    return body


def _moving(state: Mapping[str, object]) -> list[str]:
    """Draw the operand that comes in from the left."""
    rows, columns = state["moving"]
    wide = max(UNIT * columns, 4)
    fill = svg.ORANGE if state["way"] == "ones moving" else svg.BLUE
    left = LEFT - 30 - wide
    middle = TOP + SIDE / 2
    return [
        svg.text(8, 20, "moves", "start", SIZE, weight="bold"),
        svg.text(8, 44, _name(state, "moving"), "start", SIZE),
        svg.rect(left, TOP, wide, UNIT * rows, fill, opacity=0.45),
        svg.rect(left, TOP, wide, UNIT * rows, "none", fill),
        svg.text(LEFT - 16, middle + 6, "→", size=20),
    ]


def _result(state: Mapping[str, object]) -> list[str]:
    """Draw the result under the columns that it falls out of."""
    rows, columns = state["result"]
    top = TOP + SIDE + 34
    high = 6 + columns / 4
    body = [
        svg.text(LEFT + SIDE / 2, TOP + SIDE + 22, "↓", size=20),
        svg.rect(LEFT, top, UNIT * rows, high, svg.GREEN, opacity=0.35),
        svg.rect(LEFT, top, max(UNIT * rows, 2), high, "none", svg.GREEN),
        svg.text(8, top + 14, "falls out", "start", SIZE, weight="bold"),
        svg.text(8, top + 38, f"PSUM [{rows}, {columns}]", "start", SIZE),
    ]
    if state["lit"]:
        x = LEFT + UNIT * state["lit"][0]
        body.append(svg.rect(x, top, 4, high, svg.ORANGE))
    return body


def _name(state: Mapping[str, object], side: str) -> str:
    rows, columns = state[side]
    names = {
        "ones moving": {"still": "p", "moving": "ones"},
        "ones stationary": {"still": "ones", "moving": "p"},
        "ones beside values": {"still": "V and ones", "moving": "p"},
    }
    return f"{names[state['way']][side]} [{rows}, {columns}]"


def _table(state: Mapping[str, object]) -> list[str]:
    """Write what the sum costs and where it is."""
    lines = (
        ("for the sum", ""),
        ("products", f"{state['products']}"),
        ("cycles added", f"{state['added']:,}"),
        ("", ""),
        ("per block", ""),
        ("cycles", f"{state['cycles']}"),
        ("", ""),
        ("afterwards", ""),
        *((part, None) for part in _two_lines(state["lands"])),
    )
    body, y = [], 20.0
    for label, value in lines:
        bold = "bold" if label and value == "" else "normal"
        body.append(svg.text(TABLE, y, label, "start", SIZE, weight=bold))
        if value:
            body.append(svg.text(TABLE_END, y, value, "end", SIZE))
        y += 26
    return body


def _two_lines(words: str) -> tuple[str, str]:
    """Break after the word that ends the first half."""
    parts = words.split(" on ")
    if len(parts) == 2:
        return f"{parts[0]}", f"on {parts[1]}"
    return words, ""


def rounding_figure(
    means: Sequence[float], errors: Mapping[str, Sequence[float]]
) -> Figure:
    """Plot the error of two ways to round over the mean of V.

    Parameters
    ----------
    means : sequence of float
        Mean of the values, in units of their spread.
    errors : mapping of str to sequence of float
        Largest error of each way.
    """
    figure, axes = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
    looks = ((palette.BLUE, "o", "-"), (palette.ORANGE, "s", "--"))
    for (name, values), (color, marker, dash) in zip(
        errors.items(), looks, strict=True
    ):
        axes.plot(means, values, color=color, marker=marker, ls=dash, label=name)
    axes.set_ylim(0, 1.08 * max(max(values) for values in errors.values()))
    axes.ticklabel_format(axis="y", style="sci", scilimits=(-4, -4))
    axes.set_xlabel("mean of V, in units of its spread")
    axes.set_ylabel("largest error of the output")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    return figure
