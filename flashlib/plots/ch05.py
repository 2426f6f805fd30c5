"""Draw the walk of one query row over tiles of K and V (chapter 5)."""

from collections.abc import Mapping

from flashlib.plots import svg

WIDTH, HEIGHT = 640, 344
CELL_W, CELL_H = 36.0, 29.0
K_LEFT, V_LEFT, TOP = 46.0, 222.0, 54.0
TABLE, TABLE_END = 402.0, 634.0
OUT_LEFT, OUT_TOP, OUT_W = 46.0, 288.0, 147.0
SIZE = 16


def tile_walk(state: Mapping[str, object], alt: str) -> str:
    """Draw K and V with the tile in hand, the buffers, and the output row.

    Parameters
    ----------
    state : mapping
        As `flashlib.widgets.ch05.walk_state` computes it.
    alt : str
        The same in words.
    """
    body = [
        *_matrix("K", K_LEFT, state, "scores"),
        *_matrix("V", V_LEFT, state, "add"),
        *_table(state),
        *_output(state),
    ]
    shown = {key: state[key] for key in ("head", "step", "action", "m", "l", "acc")}
    return svg.picture(WIDTH, HEIGHT, body, alt, shown)


def _matrix(
    name: str, left: float, state: Mapping[str, object], reads: str
) -> list[str]:
    """Draw one of K and V: its KV heads as stripes, the tile in hand with numbers."""
    n_keys, n_heads, width = state["n_keys"], state["n_kv_heads"], state["width"]
    stripe, high = width * CELL_W, n_keys * CELL_H
    kv, reading = state["kv_head"], state["action"] == reads
    body = [svg.text(left, 20, name, "start", SIZE + 2, weight="bold")]
    for g in range(n_heads):
        bold, label = ("bold", svg.INK) if g == kv else ("normal", svg.GRAY)
        x = left + g * stripe
        body.append(svg.text(x + stripe / 2, 44, f"KV {g}", size=SIZE, weight=bold))
        body.append(svg.rect(x, TOP, stripe, high, "none", label))
    for j in range(n_keys):
        y = TOP + (j + 0.5) * CELL_H + 6
        if left == K_LEFT:
            body.append(svg.text(left - 12, y, j, "end", SIZE))
        if j in state["done"] and not (reading and j >= state["tile"][0]):
            body.append(svg.circle(left + (kv + 0.5) * stripe, y - 6, 4, svg.GRAY))
    if reading:
        body += _tile(left + kv * stripe, stripe, state, name.lower())
    return body


def _tile(
    left: float, stripe: float, state: Mapping[str, object], name: str
) -> list[str]:
    """Draw the rows that are being read, with their numbers."""
    start, rows = state["tile"][0], state[name]
    top, high = TOP + start * CELL_H, len(rows) * CELL_H
    body = [svg.rect(left, top, stripe, high, svg.BLUE, opacity=0.25)]
    body.append(svg.rect(left, top, stripe, high, "none", svg.BLUE))
    for r, row in enumerate(rows):
        for c, number in enumerate(row):
            x, y = left + (c + 0.5) * CELL_W, top + (r + 0.5) * CELL_H + 6
            body.append(svg.text(x, y, f"{number:g}", size=SIZE))
    return body


def _table(state: Mapping[str, object]) -> list[str]:
    """Write what the row holds; what just changed stands in bold."""
    body = [svg.line(TABLE - 18, 8, TABLE - 18, 276, svg.FAINT)]
    body.append(svg.text(TABLE, 20, state["title"], "start", SIZE, weight="bold"))
    y = 56.0
    for label, value, changed in state["lines"]:
        weight = "bold" if changed else "normal"
        mark = "▸ " if changed else ""
        body.append(svg.text(TABLE, y, mark + label, "start", SIZE, weight=weight))
        body.append(svg.text(TABLE_END, y, value, "end", SIZE, weight=weight))
        y += 30
    return body


def _output(state: Mapping[str, object]) -> list[str]:
    """Draw the concatenated heads of the output row, this head's stripe filled."""
    held = f"held: {state['tile_length']} + {state['width']} floats, m and ℓ"
    body = [
        svg.text(OUT_LEFT, OUT_TOP - 32, held, "start", SIZE),
        svg.text(OUT_LEFT - 12, OUT_TOP + 20, "out", "end", SIZE, weight="bold"),
    ]
    for h in range(state["n_heads"]):
        x, weight = OUT_LEFT + h * OUT_W, "bold" if h == state["head"] else "normal"
        first = h * state["width"]
        label = f"columns {first}–{first + state['width'] - 1}"
        if h == state["head"] and state["out"] is not None:
            body.append(svg.rect(x, OUT_TOP, OUT_W, 30, svg.ORANGE, opacity=0.25))
            label = f"({', '.join(f'{value:.3f}' for value in state['out'])})"
        body.append(svg.rect(x, OUT_TOP, OUT_W, 30, "none", svg.GRAY))
        body.append(svg.text(x + OUT_W / 2, OUT_TOP + 20, label, size=SIZE))
        name = f"query head {h}"
        body.append(
            svg.text(x + OUT_W / 2, OUT_TOP + 48, name, size=SIZE, weight=weight)
        )
    return body
