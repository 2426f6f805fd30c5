"""Draw the engines of one core or two in time (chapter 22)."""

from collections.abc import Mapping

from flashlib.plots import svg

WIDTH, HEIGHT = 640, 372
LEFT, RIGHT = 92.0, 632.0
TOP, LANE, BLOCK = 52.0, 24.0, 150.0
LANES = ("dma", "tensor", "vector", "scalar", "messages")
COLORS = {
    "load": svg.BLUE,
    "products": svg.GREEN,
    "softmax and the rest": svg.ORANGE,
    "messages": svg.PURPLE,
}
SIZE = 15


def timeline_picture(state: Mapping[str, object], alt: str) -> str:
    """Draw one block of lines per core over a common axis of time.

    Parameters
    ----------
    state : mapping
        As `flashlib.widgets.ch22.timeline_state` computes it.
    alt : str
        The same in words.
    """
    unit = (RIGHT - LEFT) / max(state["longest"], state["one_core"])
    body = _legend()
    for core, spans in enumerate(state["spans"]):
        body += _core(core, spans, unit, state["ends"][core])
    body += _axis(state, unit)
    keys = ("cores", "keys", "ends", "meetings", "one_core")
    return svg.picture(WIDTH, HEIGHT, body, alt, {key: state[key] for key in keys})


def _legend() -> list[str]:
    body, x = [], 8.0
    for name, color in COLORS.items():
        body.append(svg.rect(x, 10, 14, 14, color))
        body.append(svg.text(x + 20, 22, name, "start", SIZE))
        x += 44 + 8.2 * len(name)
    return body


def _core(core: int, spans: list, unit: float, end: int) -> list[str]:
    """Draw the lines of one core."""
    top = TOP + BLOCK * core
    body = [svg.text(8, top + 4, f"core {core}", "start", SIZE, weight="bold")]
    for row, lane in enumerate(LANES):
        y = top + 14 + LANE * row
        body.append(svg.text(8, y + 13, lane, "start", 14))
        body.append(svg.line(LEFT, y + 16, LEFT + unit * end, y + 16, svg.GRAY, 0.5))
        for engine, kind, start, stop in spans:
            if engine == lane:
                wide = max(unit * (stop - start), 1.2)
                body.append(svg.rect(LEFT + unit * start, y, wide, 15, COLORS[kind]))
    x = LEFT + unit * end
    body.append(svg.line(x, top + 8, x, top + 14 + LANE * len(LANES), svg.INK, 1.5))
    return body


def _axis(state: Mapping[str, object], unit: float) -> list[str]:
    """Write the end of the step, and where one core would have ended."""
    body = []
    alone = LEFT + unit * state["one_core"]
    if state["cores"] == 2:
        low = TOP + 2 * BLOCK
        body.append(svg.line(alone, TOP, alone, low, svg.RED, 1.5, "5 4"))
        body.append(svg.text(RIGHT, low + 14, _alone(state), "end", SIZE))
    ends = " and ".join(f"{t / 1000:.1f}" for t in state["ends"])
    low = TOP + BLOCK * state["cores"] + 14
    body.append(svg.text(8, low, f"ends at {ends} µs", "start", SIZE))
    return body


def _alone(state: Mapping[str, object]) -> str:
    return f"dashed: one core alone, {state['one_core'] / 1000:.1f} µs"
