"""Draw a ring of slots and the two comparisons behind a window (chapter 19)."""

import math
from collections.abc import Mapping

from flashlib.plots import svg

WIDTH, HEIGHT = 640, 300
CENTER_X, CENTER_Y, RADIUS, DOT = 150.0, 150.0, 112.0, 23.0
TABLE, BITS = 318.0, 408.0
STEP = 22.0
SIZE = 15


def ring_picture(state: Mapping[str, object], alt: str) -> str:
    """Draw the ring, the window on it, and a table of comparisons.

    Parameters
    ----------
    state : mapping
        As `flashlib.widgets.ch19.ring_state` computes it.
    alt : str
        The same in words.
    """
    body = [*_ring(state), *_table(state)]
    keys = ("pos", "window", "start", "wraps", "kept", "cached")
    return svg.picture(WIDTH, HEIGHT, body, alt, {key: state[key] for key in keys})


def _ring(state: Mapping[str, object]) -> list[str]:
    """Draw the slots as a clock face, slot 0 at the top."""
    n, body = len(state["kept"]), []
    for i, kept in enumerate(state["kept"]):
        angle = 2 * math.pi * i / n
        x = CENTER_X + RADIUS * math.sin(angle)
        y = CENTER_Y - RADIUS * math.cos(angle)
        if i == state["pos"]:
            body.append(svg.circle(x, y, DOT + 5, "none", svg.ORANGE))
        fill, rim = (svg.FAINT, svg.BLUE) if kept else ("none", svg.GRAY)
        body.append(svg.circle(x, y, DOT, fill, rim))
        body.append(svg.text(x, y + 6, i, size=17, weight="bold" if kept else "normal"))
    how = "wraps" if state["wraps"] else "straight"
    return [
        *body,
        svg.text(
            CENTER_X, CENTER_Y - 4, f"[{state['start']}, {state['pos']})", size=20
        ),
        svg.text(CENTER_X, CENTER_Y + 22, how, size=SIZE),
    ]


def _table(state: Mapping[str, object]) -> list[str]:
    """Draw both comparisons, their and, their or, and frame what is chosen."""
    ge, lt = state["ge"], state["lt"]
    rows = (
        (f"≥ {state['start']}", ge, False),
        (f"< {state['pos']}", lt, False),
        ("and", [a * b for a, b in zip(ge, lt, strict=True)], not state["wraps"]),
        ("or", [max(a, b) for a, b in zip(ge, lt, strict=True)], state["wraps"]),
    )
    body = [svg.text(TABLE, 44, "slot", "start", SIZE)]
    body += [svg.text(BITS + STEP * j, 44, j, size=14) for j in range(len(ge))]
    for i, (label, bits, chosen) in enumerate(rows):
        body += _bits(54 + 36 * i, label, bits, chosen)
    total = state["cached"] + 1
    said = f"{state['cached']} cached + itself = {total}"
    right = total == state["window"]
    asked = f"window {state['window']}" + ("" if right else ": not expressed")
    color = svg.GREEN if right else svg.RED
    body.append(svg.text(TABLE, 242, said, "start", 18))
    body.append(svg.text(TABLE, 270, asked, "start", 18, color, "bold"))
    return body


def _bits(y: float, label: str, bits: list[int], chosen: bool) -> list[str]:
    """Draw a row of bits: every run of ones is one bar."""
    left, high = BITS - STEP / 2, 26
    stroke, weight = (svg.BLUE, "bold") if chosen else (svg.GRAY, "normal")
    body = [svg.text(TABLE, y + 19, label, "start", SIZE, weight=weight)]
    padded = [0, *bits, 0]
    edges = [j for j in range(len(bits) + 1) if padded[j] != padded[j + 1]]
    for first, stop in zip(edges[::2], edges[1::2], strict=True):
        x, wide = left + STEP * first, STEP * (stop - first)
        fill = svg.BLUE if chosen else svg.GRAY
        body.append(svg.rect(x, y + 5, wide, high - 10, fill))
    body.append(svg.rect(left, y, STEP * len(bits), high, "none", stroke))
    return body
