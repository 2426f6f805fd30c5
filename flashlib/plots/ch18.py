"""Draw the row with hidden keys and what each tile leaves behind (chapter 18)."""

from collections.abc import Mapping

from flashlib.plots import svg

WIDTH, HEIGHT = 640, 312
LEFT, STEP, GAP = 92.0, 78.0, 18.0
BOX_TOP, BOX = 48.0, 50.0
ROWS = 150.0
SIZE = 15


def masked_row_picture(state: Mapping[str, object], alt: str) -> str:
    """Draw six scores, three tiles and the output.

    Parameters
    ----------
    state : mapping
        As `flashlib.widgets.ch18.masked_row_state` computes it.
    alt : str
        The same in words.
    """
    body = [*_keys(state), *_tiles(state), *_output(state)]
    keys = ("mask", "way", "scores", "m", "corr", "l", "out", "verdict")
    return svg.picture(WIDTH, HEIGHT, body, alt, {key: state[key] for key in keys})


def _x(key: int) -> float:
    """Left edge of the box of one key; tiles stand apart."""
    return LEFT + STEP * key + GAP * (key // 2)


def _keys(state: Mapping[str, object]) -> list[str]:
    """Draw the scores as the softmax meets them."""
    body = [svg.text(8, BOX_TOP + 31, "scores", "start", SIZE)]
    for j, (bit, score) in enumerate(zip(state["mask"], state["scores"], strict=True)):
        x, seen = _x(j), bit == "1"
        color = svg.BLUE if seen else svg.GRAY
        size = 20 if seen or score == "-∞" else 15
        body += [
            svg.text(x + 35, 34, f"key {j}", size=14),
            svg.rect(x, BOX_TOP, 70, BOX, color if seen else "none", opacity=0.25),
            svg.rect(x, BOX_TOP, 70, BOX, "none", color, "" if seen else "5 4"),
            svg.text(x + 35, BOX_TOP + 32, score, size=size),
        ]
    return body


def _tiles(state: Mapping[str, object]) -> list[str]:
    """Write the running state below each tile; NaN in red and bold."""
    body = []
    for i, (label, key) in enumerate((("max", "m"), ("corr", "corr"), ("sum", "l"))):
        y = ROWS + 30 * i
        body.append(svg.text(8, y, label, "start", SIZE))
        for t, value in enumerate(state[key]):
            x = _x(2 * t) + (STEP + 70) / 2
            if value == "NaN":
                body.append(svg.text(x, y, value, size=17, fill=svg.RED, weight="bold"))
            else:
                body.append(svg.text(x, y, value, size=17))
    for t in range(len(state["m"])):
        left = _x(2 * t)
        body.append(svg.line(left, 112, left + STEP + 70, 112, svg.GRAY, 2))
        body.append(svg.text(left + (STEP + 70) / 2, 128, f"after tile {t}", size=13))
    return body


def _output(state: Mapping[str, object]) -> list[str]:
    """Write the output and what kind of answer it is."""
    top = ROWS + 84
    color = {"NaN": svg.RED, "right": svg.GREEN}.get(state["verdict"], svg.ORANGE)
    if state["verdict"].startswith("0"):
        color = svg.GREEN
    out = f"({', '.join(state['out'])})"
    return [
        svg.text(8, top + 32, "output", "start", SIZE),
        svg.rect(LEFT, top, WIDTH - LEFT - 20, 52, "none", color),
        svg.text(LEFT + 16, top + 33, out, "start", 19),
        svg.text(WIDTH - 36, top + 33, state["verdict"], "end", 19, color, "bold"),
    ]
