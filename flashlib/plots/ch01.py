"""Draw a query among its keys, the weights, and the values they mix (chapter 1)."""

from collections.abc import Mapping

from flashlib.plots.svg import (
    BLUE,
    GRAY,
    GREEN,
    INK,
    ORANGE,
    PAPER,
    circle,
    line,
    picture,
    polyline,
    rect,
    text,
)

WIDTH, HEIGHT = 640, 268
SIZE = 17
UNIT = 38.0
KEY_ORIGIN = (30.0, 202.0)
VALUE_ORIGIN = (462.0, 202.0)
BASE_Y, BAR = 202.0, 158.0
BAR_LEFT, PITCH = 252.0, 30.0


def row_picture(state: Mapping[str, object], alt: str) -> str:
    """Draw the three panels of one state."""
    body = [*_keys(state), *_weights(state), *_values(state)]
    return picture(WIDTH, HEIGHT, body, alt, state)


def _at(origin: tuple[float, float], point: list) -> tuple[float, float]:
    return origin[0] + UNIT * point[0], origin[1] - UNIT * point[1]


def _axes(origin: tuple[float, float], title: str) -> list[str]:
    """Draw the two axes of a plane from 0 to 4, with its title under it."""
    parts = [text(*_at(origin, [2.0, -1.5]), title, size=SIZE)]
    for low, high in (([-0.3, 0], [4.2, 0]), ([0, -0.3], [0, 4.2])):
        parts.append(line(*_at(origin, low), *_at(origin, high), GRAY))
    for place in (2, 4):
        for point, dx, dy in (([place, 0], 0, 5), ([0, place], -5, 0)):
            x, y = _at(origin, point)
            parts.append(line(x, y, x + dx, y + dy, GRAY))
            # left of the dots that lie on the axis
            parts.append(text(x + 3.8 * dx, y + 3.6 * dy, place, size=14, fill=GRAY))
    return parts


def _keys(state: Mapping[str, object]) -> list[str]:
    """Draw query and keys, and the line on which the moved key keeps its score."""
    parts = _axes(KEY_ORIGIN, "query and keys")
    moved = state["moved"]
    total = state["scores"][moved]
    low, high = max(-0.3, total - 4.2), min(4.2, total + 0.3)
    ends = (_at(KEY_ORIGIN, [x, total - x]) for x in (low, high))
    parts.append(line(*next(ends), *next(ends), ORANGE, 1.5, "5 4"))
    tail, tip = _at(KEY_ORIGIN, [0, 0]), _at(KEY_ORIGIN, [1, 1])
    parts.append(line(*tail, *tip, INK, 2.5))
    barbs = [(tip[0] - 9, tip[1] + 2), tip, (tip[0] - 2, tip[1] + 9)]
    parts.append(polyline(barbs, INK, 2.5))
    parts.append(
        text(tip[0] - 12, tip[1] - 4, "q", size=SIZE, weight="bold", halo=True)
    )
    for j, key in enumerate(state["keys"]):
        if j != moved:
            x, y = _at(KEY_ORIGIN, key)
            parts.append(circle(x, y, 5, BLUE, PAPER))
            # the query starts at the origin; a key there has its number below the axis
            side = y - 6 if any(key) else y + 18
            parts.append(text(x + 6, side, j, "start", SIZE, halo=True))
    x, y = _at(KEY_ORIGIN, state["keys"][moved])
    parts.append(rect(x - 6, y - 6, 12, 12, ORANGE, INK))
    parts.append(text(x + 9, y - 7, moved, "start", SIZE, ORANGE, "bold", halo=True))
    return parts


def _weights(state: Mapping[str, object]) -> list[str]:
    """Draw the six weights with the scores they come from."""
    parts = [text(BAR_LEFT + 2.5 * PITCH, BASE_Y + 57, "weights in %", size=SIZE)]
    rows = zip(state["scores"], state["weights"], strict=True)
    for j, (score, weight) in enumerate(rows):
        x = BAR_LEFT + j * PITCH
        color = ORANGE if j == state["moved"] else BLUE
        tall = weight * BAR
        parts.append(rect(x - 10, BASE_Y - tall, 20, tall, color))
        percent = f"{100 * weight:.0f}"
        parts.append(text(x, BASE_Y - tall - 6, percent, size=SIZE))
        parts.append(text(x, BASE_Y + 17, j, size=SIZE))
        parts.append(text(x, BASE_Y + 35, f"{score}", size=SIZE, fill=GRAY))
    right = BAR_LEFT + 5.6 * PITCH
    parts.append(line(BAR_LEFT - 16, BASE_Y, right, BASE_Y, INK))
    parts.append(text(BAR_LEFT - 18, BASE_Y + 35, "s", "end", SIZE, GRAY))
    return parts


def _values(state: Mapping[str, object]) -> list[str]:
    """Draw the values, each as large as its weight, and the output among them."""
    parts = _axes(VALUE_ORIGIN, "values and output")
    pairs = zip(state["values"], state["weights"], strict=True)
    for j, (value, weight) in enumerate(pairs):
        x, y = _at(VALUE_ORIGIN, value)
        color = ORANGE if j == state["moved"] else BLUE
        radius = 3 + 15 * weight**0.5
        parts.append(circle(x, y, radius, color, PAPER))
        aside = 3 + 0.7 * radius
        # the output may come close to a value on the axis from above
        side = y - aside if value[0] else y + aside + 10
        parts.append(text(x + aside, side, j, "start", SIZE))
    x, y = _at(VALUE_ORIGIN, state["out"])
    parts.append(line(x - 9, y - 9, x + 9, y + 9, INK, 4.5))
    parts.append(line(x - 9, y + 9, x + 9, y - 9, INK, 4.5))
    parts.append(line(x - 8, y - 8, x + 8, y + 8, GREEN, 2))
    parts.append(line(x - 8, y + 8, x + 8, y - 8, GREEN, 2))
    parts.append(text(x + 12, y + 16, "out", "start", SIZE, weight="bold"))
    return parts
