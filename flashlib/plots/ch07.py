"""Draw additions that wait for each other, and heads that write stripes (chapter 7)."""

from collections.abc import Mapping, Sequence

from flashlib.plots import svg

WIDTH, SIZE = 640, 16
LEFT, UNIT, LANE = 60.0, 5.6, 29.0
CELL, GRID_LEFT, GRID_TOP = 56.0, 118.0, 128.0


def lanes_picture(state: Mapping[str, object], alt: str) -> str:
    """Draw one bar per addition on the lane of its accumulator.

    Parameters
    ----------
    state : mapping
        As `flashlib.widgets.ch07.lanes_state` computes it.
    alt : str
        The same in words.
    """
    head = "1 accumulator" if state["lanes"] == 1 else f"{state['lanes']} accumulators"
    title = f"{head}, sum ready after {state['latency']} cycles"
    body = [svg.text(8, 22, title, "start", SIZE, weight="bold")]
    for lane in range(state["lanes"]):
        body.append(svg.text(8, 62 + lane * LANE, f"sum {lane}", "start", 15))
    for lane, start, what in state["additions"]:
        body += _addition(lane, start, what, state["latency"])
    end = LEFT + UNIT * state["cycles"]
    bottom = 46 + 8 * LANE
    body.append(svg.line(end, 36, end, bottom, svg.ORANGE, 2))
    body.append(svg.line(LEFT, bottom, WIDTH - 6, bottom, svg.GRAY))
    for cycle in range(0, 101, 20):
        body.append(svg.text(LEFT + UNIT * cycle, bottom + 18, cycle, size=14))
    body.append(svg.text(8, bottom + 18, "cycle", "start", 14))
    lines = (
        f"{state['cycles']} cycles, adder busy {state['busy']:.0%} of the time",
        f"sum {state['sum']}, {state['steps']:+.2f} float32 steps off",
    )
    for place, line in enumerate(lines):
        words = line.replace("-", "−")
        body.append(svg.text(8, bottom + 48 + 24 * place, words, "start", SIZE))
    return svg.picture(WIDTH, bottom + 84, body, alt, state)


def _addition(lane: int, start: int, what: str, latency: int) -> list[str]:
    """Draw one addition from its start to the cycle in which its sum is ready."""
    x, y, width = LEFT + UNIT * start, 46 + lane * LANE, UNIT * latency
    color = svg.GREEN if what == "+" else svg.BLUE
    body = [
        svg.rect(x + 0.5, y, width - 1, 21, "none", color),
        svg.rect(x + 0.5, y + 17, width - 1, 4, color),
    ]
    if width > 18:
        body.append(svg.text(x + width / 2, y + 14, what, size=13))
    return body


def stripes_picture(state: Mapping[str, object], alt: str) -> str:
    """Draw the output with the heads that wrote each number.

    Parameters
    ----------
    state : mapping
        As `flashlib.widgets.ch07.stripes_state` computes it.
    alt : str
        The same in words.
    """
    title = f"each head writes {state['rule']}; order {state['order']}"
    body = [svg.text(8, 22, title, "start", SIZE, weight="bold")]
    for head, (first, stop) in enumerate(state["columns"]):
        body += _stripe(head, first, stop)
    for row, writers in enumerate(state["writers"]):
        y = GRID_TOP + row * 40
        body.append(svg.text(GRID_LEFT - 12, y + 25, f"token {row}", "end", SIZE))
        for column, heads in enumerate(writers):
            right = state["right"][row][column]
            body += _number(GRID_LEFT + column * CELL, y, heads, right)
    bottom = GRID_TOP + 3 * 40
    for column in range(8):
        x = GRID_LEFT + (column + 0.5) * CELL
        body.append(svg.text(x, bottom + 18, column, size=14))
    body.append(svg.text(GRID_LEFT - 12, bottom + 18, "column", "end", 14))
    races = ", ".join(f"{a} with {b}" for a, b in state["races"]) or "none"
    body.append(svg.text(8, bottom + 50, f"races: {races}", "start", SIZE))
    wrong = f"wrong numbers in this order: {state['wrong']} of 24"
    body.append(svg.text(8, bottom + 74, wrong, "start", SIZE))
    return svg.picture(WIDTH, bottom + 86, body, alt, state)


def _stripe(head: int, first: int, stop: int) -> list[str]:
    """Draw the range of columns that a head writes, above the output."""
    y = 38 + head * 21
    x, width = GRID_LEFT + first * CELL, (stop - first) * CELL
    return [
        svg.text(GRID_LEFT - 12, y + 14, f"head {head}", "end", 15),
        svg.rect(x + 2, y + 2, width - 4, 14, svg.BLUE),
    ]


def _number(x: float, y: float, heads: Sequence[int], right: bool) -> list[str]:
    """Draw one number of the output: its writers, and a cross if it is wrong."""
    raced = len(heads) > 1
    color = svg.ORANGE if raced else svg.GRAY
    body = [svg.rect(x + 2, y + 2, CELL - 4, 36, "none", color)]
    if raced:
        body.append(svg.rect(x + 2, y + 32, CELL - 4, 6, color))
    label = " ".join(map(str, heads)) or "–"
    weight = "bold" if raced else "normal"
    body.append(svg.text(x + CELL / 2, y + 24, label, size=15, weight=weight))
    if not right:
        body.append(svg.line(x + 6, y + 6, x + CELL - 6, y + 34, svg.RED, 2))
        body.append(svg.line(x + 6, y + 34, x + CELL - 6, y + 6, svg.RED, 2))
    return body
