"""Draw the way from a page table to a partition (chapter 21)."""

from collections.abc import Mapping

from flashlib.plots import svg

WIDTH, HEIGHT = 640, 340
LEFT, WIDE = 8.0, 400.0
SIDE_LEFT, SIDE_TOP, COLUMN, LANE = 452.0, 52.0, 11.0, 1.75
LANES, COLUMNS = 128, 16
SIZE = 15


def explorer_picture(state: Mapping[str, object], alt: str) -> str:
    """Draw a token in its sequence, in the pool, in its page and on chip.

    Parameters
    ----------
    state : mapping
        As `flashlib.widgets.ch21.explorer_state` computes it.
    alt : str
        The same in words.
    """
    body = [*_strips(state), *_page(state), *_chip(state)]
    keys = ("page_length", "token", "entry", "block", "partition", "free", "run_bytes")
    return svg.picture(WIDTH, HEIGHT, body, alt, {key: state[key] for key in keys})


def _strips(state: Mapping[str, object]) -> list[str]:
    """Draw the sequence and the pool with the page lit in both."""
    body, labels = [], []
    rows = (
        (20.0, f"page {state['page']} of the sequence", "page", "pages"),
        (86.0, f"place {state['entry']} of the pool", "entry", "pool"),
    )
    centers = []
    for y, label, place, count in rows:
        unit = WIDE / state[count]
        x = LEFT + unit * state[place]
        labels.append((y, label))
        body.append(svg.rect(LEFT, y + 8, WIDE, 16, svg.FAINT))
        body.append(svg.rect(x, y + 8, max(unit, 3), 16, svg.BLUE))
        body.append(svg.rect(LEFT, y + 8, WIDE, 16, "none", svg.INK))
        centers.append((x + max(unit, 3) / 2, y + 16))
    (x1, y1), (x2, y2) = centers
    body.append(svg.line(x1, y1 + 8, x2, y2 - 8, svg.BLUE, 1.5, "3 3"))
    return [*body, *(part for label in labels for part in _label(*label))]


def _label(y: float, words: str) -> list[str]:
    """Write on paper of its own, so that no line runs through the words."""
    wide = 7.6 * len(words)
    return [
        svg.rect(LEFT - 2, y - 15, wide, 20, svg.PAPER),
        svg.text(LEFT, y, words, "start", SIZE),
    ]


def _page(state: Mapping[str, object]) -> list[str]:
    """Draw the page with its cuts, the block and the token."""
    top, high, factor = 180.0, 30.0, state["factor"]
    part = WIDE / factor
    token = WIDE / state["page_length"]
    x = LEFT + WIDE * state["offset"] / state["page_length"]
    cut = "whole" if factor == 1 else f"cut in {factor}"
    start = LEFT + WIDE * state["entry"] / state["pool"]
    body = [
        svg.line(start, 110, LEFT, top, svg.GRAY),
        svg.line(start + max(WIDE / state["pool"], 3), 110, LEFT + WIDE, top, svg.GRAY),
        *_label(top - 14, f"the page, {cut}"),
        svg.rect(LEFT + part * state["part"], top, part, high, svg.BLUE, opacity=0.45),
        svg.rect(x, top, max(token, 3), high, svg.ORANGE),
        svg.rect(LEFT, top, WIDE, high, "none", svg.INK),
    ]
    for i in range(1, factor):
        body.append(svg.line(LEFT + part * i, top, LEFT + part * i, top + high))
    lines = (
        f"block {state['block']}, {state['unit']} tokens",
        f"{state['run_bytes']:,} bytes in a run",
        f"{state['share']}% of the DMA rate",
    )
    for i, words in enumerate(lines):
        body.append(svg.text(LEFT, top + high + 26 + 26 * i, words, "start", SIZE))
    return body


def _chip(state: Mapping[str, object]) -> list[str]:
    """Draw 128 partitions, the block that arrived and the token in it."""
    wide, high = COLUMN * COLUMNS, LANE * LANES
    first = SIDE_LEFT + COLUMN * state["unit"] * state["fold"]
    y = SIDE_TOP + LANE * state["partition"]
    lane = min(y, SIDE_TOP + high - 5)
    body = [
        svg.text(SIDE_LEFT, 20, "on chip", "start", SIZE, weight="bold"),
        svg.text(SIDE_LEFT, 42, "128 partitions", "start", SIZE),
    ]
    for i in range(1, state["folds"]):
        x = SIDE_LEFT + COLUMN * state["unit"] * i
        body.append(svg.line(x, SIDE_TOP, x, SIDE_TOP + high, svg.GRAY, 1, "3 3"))
    body += [
        svg.rect(first, lane, COLUMN * state["unit"], 5, svg.BLUE),
        svg.rect(SIDE_LEFT + COLUMN * state["free"], lane - 3, COLUMN, 11, svg.ORANGE),
        svg.rect(SIDE_LEFT, SIDE_TOP, wide, high, "none", svg.INK),
        svg.text(SIDE_LEFT, 300, f"partition {state['partition']}", "start", SIZE),
        svg.text(SIDE_LEFT, 326, f"free position {state['free']}", "start", SIZE),
    ]
    return body
