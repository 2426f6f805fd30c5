"""Draw the float cliff, as a moving picture and as a sweep of digits (chapter 3)."""

from collections.abc import Mapping

import numpy as np

from flashlib.plots import palette
from flashlib.plots.svg import (
    BLUE,
    FAINT,
    GRAY,
    GREEN,
    INK,
    ORANGE,
    PAPER,
    RED,
    circle,
    line,
    picture,
    polyline,
    rect,
    text,
)

WIDTH, HEIGHT = 640, 386
LEFT, RIGHT = 20, 620
TOP_Y, LINE_Y = 62, 122
BASE_Y, BAR = 336, 104
LOW, HIGH = -120.0, 100.0
BITS = 24
# ln of half the smallest subnormal, of the smallest normal, of the largest float32.
EDGES = (-103.97, -87.34, 88.72)


def cliff_picture(state: Mapping[str, object], alt: str) -> str:
    """Draw the row on the bits that float32 has left, and the weights under it."""
    body = [*_zones(), *_row_on_line(state), *_weights(state)]
    return picture(WIDTH, HEIGHT, body, alt, state)


def _x(exponent: float) -> float:
    share = (min(max(exponent, LOW), HIGH) - LOW) / (HIGH - LOW)
    return LEFT + share * (RIGHT - LEFT)


def _y(exponent: float) -> float:
    """Return the height of the ground: bits that ``exp(exponent)`` keeps."""
    if exponent > EDGES[2]:
        return LINE_Y
    share = (exponent - EDGES[0]) / (EDGES[1] - EDGES[0])
    return LINE_Y - min(max(share, 0.0), 1.0) * (LINE_Y - TOP_Y)


def _zones() -> list[str]:
    """Draw the ground, its edges, and what exp does on each stretch."""
    stretches = (
        (LOW, EDGES[0], GRAY, "zero"),
        (EDGES[0], EDGES[1], ORANGE, "fades"),
        (EDGES[1], EDGES[2], GREEN, f"exp keeps all {BITS} bits"),
        (EDGES[2], HIGH, RED, "inf"),
    )
    parts = [text(LEFT, 18, "where the exponents s - r of the row lie", "start", 16)]
    for start, stop, color, words in stretches:
        left, right = _x(start), _x(stop)
        parts.append(rect(left, LINE_Y, right - left, 8, color))
        parts.append(text((left + right) / 2, LINE_Y + 46, words, size=15))
    ground = [(edge, LINE_Y) for edge in (LOW, EDGES[0])]
    ground += [(edge, TOP_Y) for edge in EDGES[1:]]
    ground += [(edge, LINE_Y) for edge in (EDGES[2], HIGH)]
    parts.append(polyline(((_x(edge), y) for edge, y in ground), INK, 2))
    for edge, anchor in zip(EDGES, ("end", "start", "middle"), strict=True):
        parts.append(text(_x(edge), LINE_Y + 25, f"{edge:.1f}", anchor, 15))
    return parts


def _row_on_line(state: Mapping[str, object]) -> list[str]:
    """Stand the six keys on the ground and name the ends of the row."""
    exponents = state["exponents"]
    parts = [circle(_x(e), _y(e) - 4, 4, BLUE, PAPER) for e in exponents]
    center = _x(sum(exponents) / len(exponents))
    words = f"the row: {min(exponents):g} to {max(exponents):g}"
    anchor = "start" if center < 110 else "end" if center > 530 else "middle"
    edge = {"start": LEFT, "end": RIGHT, "middle": center}[anchor]
    parts.append(text(edge, TOP_Y - 18, words, anchor, 16, weight="bold"))
    return parts


def _weights(state: Mapping[str, object]) -> list[str]:
    """Draw computed weights beside exact ones, with the terms under them."""
    parts = [text(LEFT, 200, _verdict(state), "start", 16)]
    pitch = (RIGHT - LEFT) / 6
    rows = zip(state["weights"], state["exact"], state["terms"], strict=True)
    for j, (weight, exact, term) in enumerate(rows):
        x = LEFT + j * pitch + 12
        width = (pitch - 24) / 2
        right = x + width
        parts.append(rect(x, BASE_Y - exact * BAR, width, exact * BAR, FAINT, GRAY))
        tall = 0.0 if isinstance(weight, str) else weight * BAR
        words = weight if isinstance(weight, str) else f"{weight:.4f}"
        color = RED if words == "NaN" else INK
        parts.append(rect(right, BASE_Y - tall, width, tall, BLUE))
        top = BASE_Y - max(tall, exact * BAR) - 6
        parts.append(text(right, min(top, BASE_Y - 8), words, size=16, fill=color))
        parts.append(text(right, BASE_Y + 18, f"key {j}", size=16))
        parts.append(text(right, BASE_Y + 39, _term(term), size=15))
    parts.append(line(LEFT, BASE_Y, RIGHT, BASE_Y, INK))
    return parts


def _verdict(state: Mapping[str, object]) -> str:
    digits = state["digits"]
    found = "no digit is left" if digits is None else f"{digits} digits are right"
    return f"Weights: exact (gray, left), float32 (blue, right); {found}."


def _term(term: float | str) -> str:
    return f"p = {term}" if isinstance(term, str) else f"p = {term:.2g}"


def digits_sweep(offsets: np.ndarray, curves: Mapping[str, np.ndarray]) -> object:
    """Plot correct digits against the distance of r from the max.

    Parameters
    ----------
    offsets : np.ndarray
        ``r - max``, ascending.
    curves : mapping of str to np.ndarray
        Correct decimal digits per offset, by label; NaN where the weights are NaN.
    """
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7.2, 3.4), layout="constrained")
    styles = ((palette.BLUE, "-", "o"), (palette.ORANGE, "--", "s"))
    for (label, digits), (color, dash, mark) in zip(
        curves.items(), styles, strict=False
    ):
        axes.plot(offsets, digits, dash, color=color, label=label, lw=1.8)
        last = np.flatnonzero(~np.isnan(digits))[-1]
        axes.plot(offsets[last], digits[last], mark, color=color, ms=7)
    for edge, words in ((87.34, "subnormal"), (103.97, "zero")):
        axes.axvline(edge, color=palette.DARK, lw=1, ls=":")
        axes.text(edge - 1, 8.8, words, ha="right", va="top", fontsize=9)
    axes.set(xlabel="r - max", ylabel="correct digits", ylim=(-0.2, 9))
    axes.set_xlim(offsets[0], offsets[-1])
    axes.legend(frameon=False, loc="lower left")
    return figure
