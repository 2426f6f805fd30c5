"""Draw one instruction with the memories, and the engines in time (chapter 15)."""

from collections.abc import Iterable, Mapping

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from flashlib.plots import palette, svg

WIDTH, HEIGHT = 640, 456
ENGINES = ("tensor", "vector", "scalar", "gpsimd", "dma")
SIZE, SMALL = 15, 13
CELL_W, CELL_H = 41.0, 21.0
LABEL_W = 72.0  # a panel is at least as wide as the line that says where it lies
GRID_TOP = 146.0
SBUF_TOP, PSUM_TOP = 354.0, 420.0


def viewer(state: Mapping[str, object], alt: str) -> str:
    """Draw the instruction, its operands as grids, and what is alive on chip.

    Parameters
    ----------
    state : mapping
        As `flashlib.widgets.ch15.viewer_state` computes it.
    alt : str
        The same in words.
    """
    body = [*_head(state), *_operands(state), *_sbuf(state), *_psum(state)]
    shown = {key: state[key] for key in ("number", "op", "engine", "step", "used")}
    return svg.picture(WIDTH, HEIGHT, body, alt, shown)


def _head(state: Mapping[str, object]) -> list[str]:
    """Draw the five engines, the instruction and what it does."""
    body = []
    for i, engine in enumerate(ENGINES):
        x, active = 8 + i * 126.0, engine == state["engine"]
        if active:
            body.append(svg.rect(x, 6, 118, 26, svg.BLUE, opacity=0.25))
        body.append(svg.rect(x, 6, 118, 26, "none", svg.BLUE if active else svg.GRAY))
        weight, fill = ("bold", svg.INK) if active else ("normal", svg.GRAY)
        body.append(svg.text(x + 59, 24, engine, size=SIZE, weight=weight, fill=fill))
    title = f"{state['number']}  {state['op']}"
    body.append(svg.text(8, 58, title, "start", SIZE + 2, weight="bold"))
    body.append(svg.text(632, 58, f"step {state['step']}", "end", SIZE))
    body.append(svg.text(8, 84, state["says"], "start", SIZE))
    return body


def _operands(state: Mapping[str, object]) -> list[str]:
    """Draw the operands side by side, the written one last behind an arrow."""
    panels, reads = state["panels"], state["reads"]
    widths = [max(_width(panel), LABEL_W) for panel in panels]
    free = WIDTH - 40.0 - 30.0 * (0 < reads) - sum(widths)
    gap = min(44.0, free / max(len(panels) - 1, 1))
    x, body = 32.0, []
    for i, panel in enumerate(panels):
        if i == reads:
            if reads:
                body.append(svg.text(x - 6, GRID_TOP + 16, "→", size=22))
            x += 30.0
        body += _grid(x, panel, i == reads)
        x += widths[i] + gap
    return body


def _width(panel: Mapping[str, object]) -> float:
    more = panel["shape"][1] > len(panel["cells"][0])
    return CELL_W * len(panel["cells"][0]) + (20.0 if more else 0.0)


def _grid(x: float, panel: Mapping[str, object], written: bool) -> list[str]:
    """Draw a corner of a tensor: rows are partitions, the last one set apart."""
    rows, columns = panel["shape"]
    color = svg.ORANGE if written else svg.BLUE
    cells, wide = panel["cells"], _width(panel)
    apart = rows > len(cells)
    high = CELL_H * (len(cells) + apart)
    place = f"{panel['memory'].upper()} [{rows}, {columns}]"
    body = [
        svg.text(x, GRID_TOP - 28, panel["name"], "start", SIZE, weight="bold"),
        svg.text(x, GRID_TOP - 9, place, "start", SMALL),
        svg.rect(x, GRID_TOP, wide, high, color, opacity=0.18),
        svg.rect(x, GRID_TOP, wide, high, "none", color),
    ]
    if written:
        body.append(svg.rect(x - 2, GRID_TOP - 2, wide + 4, high + 4, "none", color))
    for r, row in enumerate(cells):
        y = GRID_TOP + 16 + CELL_H * (r + (apart and r == len(cells) - 1))
        if panel["memory"] != "hbm":
            label = panel["rows"][r]
            body.append(svg.text(x - 6, y, label, "end", 12, fill=svg.GRAY))
        for c, cell in enumerate(row):
            body.append(svg.text(x + (c + 0.5) * CELL_W, y, cell, size=SMALL))
        if columns > len(row):
            body.append(svg.text(x + wide - 10, y, "…", size=SMALL))
    if apart:
        y = GRID_TOP + 14 + CELL_H * (len(cells) - 1)
        body.append(svg.text(x + wide / 2, y, "⋮", size=SMALL))
    return body


def _sbuf(state: Mapping[str, object]) -> list[str]:
    """Draw the stack of SBUF, one box for each live tensor."""
    used = f"{state['used']:,} of {state['capacity']:,} bytes per partition"
    body = [
        svg.text(8, SBUF_TOP - 9, "SBUF", "start", SIZE, weight="bold"),
        svg.text(632, SBUF_TOP - 9, used, "end", SMALL),
    ]
    for i, (name, touch) in enumerate(state["sbuf"]):
        body += _box(8 + i * 48.0, SBUF_TOP, 48.0, name, touch)
    return body


def _psum(state: Mapping[str, object]) -> list[str]:
    """Draw the eight banks of PSUM."""
    body = [
        svg.text(8, PSUM_TOP - 9, "PSUM", "start", SIZE, weight="bold"),
        svg.text(
            632, PSUM_TOP - 9, "8 banks of 2,048 bytes per partition", "end", SMALL
        ),
    ]
    for i, (name, touch) in enumerate(state["psum"]):
        body += _box(8 + i * 78.0, PSUM_TOP, 78.0, name, touch)
    return body


def _box(x: float, y: float, wide: float, name: str, touch: str) -> list[str]:
    """Draw one place of a memory; what is written has the bold frame."""
    color = {"read": svg.BLUE, "written": svg.ORANGE}.get(touch)
    body = []
    if color:
        body.append(svg.rect(x, y, wide, 24, color, opacity=0.25))
    body.append(svg.rect(x, y, wide, 24, "none", svg.GRAY))
    if touch == "written":
        body.append(svg.rect(x + 1.5, y + 1.5, wide - 3, 21, "none", svg.ORANGE))
    if name:
        weight = "bold" if color else "normal"
        body.append(svg.text(x + wide / 2, y + 16, name, size=11, weight=weight))
    return body


def engines_figure(events: Iterable[tuple[str, str, float, float, float]]) -> Figure:
    """Draw who works when, and what the transfers wait for.

    Parameters
    ----------
    events : iterable of (engine, step, start, busy, end)
        Times in nanoseconds; a transfer ends later than its engines are busy.
    """
    figure, axes = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
    named, last = set(), dict.fromkeys(ENGINES, -1e9)
    for engine, step, start, busy, end in events:
        row = ENGINES.index(engine)
        axes.barh(row, end - start, left=start, height=0.42, color=palette.FAINT)
        axes.barh(row, max(busy, 12), left=start, height=0.42, color=palette.BLUE)
        if step not in named:
            below = start - last[engine] < 400
            height = row + (0.27 if below else -0.27)
            side = "top" if below else "bottom"
            axes.text(start, height, step, fontsize=8, va=side)
            named.add(step)
            last[engine] = -1e9 if below else start
    axes.set_yticks(range(len(ENGINES)), ENGINES)
    axes.set_ylim(len(ENGINES) - 0.45, -0.6)
    axes.set_xlim(left=-80)  # the first names stay clear of the axis
    axes.set_xlabel("nanoseconds")
    axes.grid(axis="x", alpha=0.3)
    return figure


def product_figure(k: int, m: int, n: int) -> Figure:
    """Draw the operands and the result of one product to scale.

    Parameters
    ----------
    k, m, n : int
        Partitions of both operands, columns of the stationary one and of the moving
        one.
    """
    parts = (
        ("stationary A", f"K = {k}", f"M = {m} columns", k, m, palette.BLUE),
        ("moving B", f"K = {k}", f"N = {n} columns", k, n, palette.GREEN),
        ("result C = AᵀB", f"M = {m}", f"N = {n} columns", m, n, palette.ORANGE),
    )
    figure, axes = plt.subplots(figsize=(6.4, 2.9), layout="constrained")
    x = 0.0
    for name, rows, columns, high, wide, color in parts:
        place = (x, -high), wide, high
        axes.add_patch(plt.Rectangle(*place, facecolor=color, alpha=0.3))
        axes.add_patch(plt.Rectangle(*place, fill=False, edgecolor=color))
        axes.text(x, 16, name, fontsize=10, weight="bold")
        axes.text(x, 4, columns, fontsize=9)
        axes.text(x - 4, -high / 2, rows, fontsize=9, ha="right", va="center")
        x += wide + 92
    axes.set_xlim(-40, x - 20)
    axes.set_ylim(-m - 4, 28)
    axes.set_aspect("equal")
    axes.axis("off")
    return figure
