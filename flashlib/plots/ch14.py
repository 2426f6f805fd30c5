"""Draw sequences over the pages they own, and the speed of reading (chapter 14)."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from flashlib.plots import palette, svg

WIDTH, HEIGHT = 640, 372
LEFT, BOX, GAP = 62.0, 42.0, 6.0
ROWS, MEMORY = (58.0, 140.0), 238.0
SIZE = 16
COLORS = {"": svg.GRAY, "A": svg.BLUE, "B": svg.ORANGE, "AB": svg.GREEN}


def page_table(state: Mapping[str, object], alt: str) -> str:
    """Draw both sequences in reading order, and the memory below them.

    Parameters
    ----------
    state : mapping
        As `flashlib.widgets.ch14.pages_state` computes it.
    alt : str
        The same in words.
    """
    title = f"step {state['step']}: {state['title']}"
    body = [svg.text(8, 24, title, "start", SIZE, weight="bold")]
    for b, table in enumerate(state["tables"]):
        body += _sequence(ROWS[b], "AB"[b], table, state["lengths"][b], state)
    body.append(svg.text(8, MEMORY - 14, "memory", "start", SIZE, weight="bold"))
    x = 8.0
    for page, who in enumerate(state["owners"]):
        body += _page(x, page, who, state)
        x += state["block_len"] * BOX + GAP
    for place, line in enumerate(state["lines"]):
        body.append(svg.text(8, MEMORY + 98 + 24 * place, line, "start", SIZE))
    return svg.picture(WIDTH, HEIGHT, body, alt, state)


def _sequence(
    y: float, name: str, table: Sequence[int], length: int, state: Mapping[str, object]
) -> list[str]:
    """Draw the tokens of one sequence in order, grouped by page."""
    body = [svg.text(8, y + 27, name, "start", 20, weight="bold")]
    if not table:
        body.append(svg.text(LEFT, y + 27, "no tokens, no pages", "start", SIZE))
    x, read = LEFT, 0
    for page in table:
        who = state["owners"][page]
        for slot in range(state["block_len"]):
            token = state["held"][page][slot] if read < length else ""
            body += _slot(x, y, token, COLORS[who], bool(token))
            x, read = x + BOX, read + 1
        middle = x - state["block_len"] * BOX / 2
        body.append(svg.text(middle, y + 62, f"→ {page}", size=SIZE))
        x += GAP
    return body


def _page(x: float, page: int, who: str, state: Mapping[str, object]) -> list[str]:
    """Draw one page of the memory: its slots, its number, its owners."""
    width = state["block_len"] * BOX
    live = _live_slots(page, state)
    body = []
    for slot, token in enumerate(state["held"][page]):
        shown = token if slot < live else f"({token})" if token else ""
        place = x + slot * BOX
        body += _slot(place, MEMORY, shown, COLORS[who], slot < live)
    body.append(svg.text(x + width / 2, MEMORY + 58, page, size=SIZE, weight="bold"))
    label = " ".join(who) or "–"
    body.append(svg.text(x + width / 2, MEMORY + 76, label, size=15, fill=COLORS[who]))
    return body


def _live_slots(page: int, state: Mapping[str, object]) -> int:
    """Count the slots of a page that some owner reads."""
    found = [0]
    for table, length in zip(state["tables"], state["lengths"], strict=True):
        if page in table:
            before = table.index(page) * state["block_len"]
            found.append(min(length - before, state["block_len"]))
    return max(found)


def _slot(x: float, y: float, token: str, color: str, live: bool) -> list[str]:
    """Draw one slot; a bar in the color of its owners marks a token that is read."""
    dash = "" if live else "3 3"
    body = [svg.rect(x + 1, y, BOX - 2, 42, "none", svg.GRAY, dash)]
    if live:
        body.append(svg.rect(x + 1, y + 34, BOX - 2, 8, color))
    if token:
        ink = svg.INK if live else svg.GRAY
        body.append(svg.text(x + BOX / 2, y + 25, token, size=SIZE, fill=ink))
    return body


def bandwidth_figure(
    keys: Sequence[int], runs: Mapping[str, Sequence[np.ndarray]]
) -> Figure:
    """Plot bytes per second of decode steps over the length of the cache.

    Parameters
    ----------
    keys : sequence of int
        Cached keys of each step.
    runs : mapping of str to sequence of ndarray
        GB/s of every run, for each way to read and each number of keys.
    """
    figure, axes = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    looks = (
        (palette.GRAY, "D", ":"),
        (palette.BLUE, "o", "-"),
        (palette.ORANGE, "s", "--"),
    )
    for (name, rates), (color, marker, dash) in zip(runs.items(), looks, strict=True):
        slow, middle, fast = np.quantile(rates, (0, 0.5, 1), axis=1)
        axes.fill_between(keys, slow, fast, color=color, alpha=0.15, linewidth=0)
        axes.plot(keys, middle, color=color, marker=marker, linestyle=dash, label=name)
    axes.set_xscale("log", base=2)
    axes.set_xticks(keys, [f"{n:,}" for n in keys])
    axes.set_ylim(bottom=0)
    axes.set_xlabel("keys in the cache")
    axes.set_ylabel("GB/s of keys and values")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    return figure
