"""Write small drawings as SVG text whose colors follow the page (book).

The drawings of the moving figures are SVG by hand rather than Matplotlib pictures: a
frame costs one to three kilobytes, stays sharp on a phone, and takes its colors from
the style sheet, so that the same frame reads in light and in dark mode.
"""

import html
import json
from collections.abc import Iterable, Mapping

from flashlib.plots import palette

# The style sheet replaces each color in dark mode.
BLUE = f"var(--fl-blue, {palette.BLUE})"
ORANGE = f"var(--fl-orange, {palette.ORANGE})"
GREEN = f"var(--fl-green, {palette.GREEN})"
PURPLE = f"var(--fl-purple, {palette.PURPLE})"
RED = f"var(--fl-red, {palette.RED})"
GRAY = f"var(--fl-gray, {palette.GRAY})"
FAINT = f"var(--fl-faint, {palette.FAINT})"
INK = "var(--fl-ink, currentColor)"
PAPER = "var(--fl-paper, transparent)"


def picture(
    width: float,
    height: float,
    body: Iterable[str],
    alt: str,
    state: Mapping[str, object],
    scale: float = 1.0,
) -> str:
    """Wrap drawn parts into one ``<svg>`` element with a name and its state.

    Parameters
    ----------
    width, height : float
        Size of the drawing in CSS pixels; it shrinks with the column it stands in.
        A phone does not let it become narrower than `width`, it scrolls.
    body : iterable of str
        What `rect`, `text`, `line` and `polyline` returned.
    alt : str
        The picture in words, for readers who do not see it.
    state : mapping
        The numbers the picture shows; written to ``data-state`` as JSON, so that a
        test can read back from the page which state is on display.
    scale : float
        How many times as large the drawing is shown where there is room for it.
    """
    data = html.escape(json.dumps(state, sort_keys=True))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="fl-picture" role="img" '
        f'aria-label="{html.escape(alt)}" data-state="{data}" '
        f'viewBox="0 0 {_n(width)} {_n(height)}" width="{_n(width * scale)}" '
        f'style="max-width:100%;height:auto;--fl-width:{_n(width)}px" '
        f'font-family="sans-serif">'
        f"{''.join(body)}</svg>"
    )


def rect(
    x: float,
    y: float,
    width: float,
    height: float,
    fill: str = "none",
    stroke: str = "none",
    dash: str = "",
    opacity: float = 1.0,
) -> str:
    """Draw a rectangle with its upper left corner at (x, y)."""
    extra = f' stroke-dasharray="{dash}"' if dash else ""
    extra += f' opacity="{_n(opacity)}"' if opacity != 1.0 else ""
    return (
        f'<rect x="{_n(x)}" y="{_n(y)}" width="{_n(max(width, 0))}" '
        f'height="{_n(max(height, 0))}" fill="{fill}" stroke="{stroke}"{extra}/>'
    )


def text(
    x: float,
    y: float,
    words: object,
    anchor: str = "middle",
    size: float = 13,
    fill: str = INK,
    weight: str = "normal",
    halo: bool = False,
) -> str:
    """Write one line of text with its base line at y; a halo covers lines behind it."""
    bold = f' font-weight="{weight}"' if weight != "normal" else ""
    if halo:
        bold += f' paint-order="stroke" stroke="{PAPER}" stroke-width="5"'
    return (
        f'<text x="{_n(x)}" y="{_n(y)}" text-anchor="{anchor}" '
        f'font-size="{_n(size)}" fill="{fill}"{bold}>{html.escape(str(words))}</text>'
    )


def line(
    x1: float,
    y1: float,
    x2: float,
    y2: float,
    stroke: str = INK,
    width: float = 1.0,
    dash: str = "",
) -> str:
    """Draw a straight line."""
    extra = f' stroke-dasharray="{dash}"' if dash else ""
    return (
        f'<line x1="{_n(x1)}" y1="{_n(y1)}" x2="{_n(x2)}" y2="{_n(y2)}" '
        f'stroke="{stroke}" stroke-width="{_n(width)}"{extra}/>'
    )


def polyline(
    points: Iterable[tuple[float, float]], stroke: str = INK, width: float = 1.5
) -> str:
    """Draw connected straight lines through (x, y) points."""
    path = " ".join(f"{_n(x)},{_n(y)}" for x, y in points)
    return (
        f'<polyline points="{path}" fill="none" stroke="{stroke}" '
        f'stroke-width="{_n(width)}"/>'
    )


def circle(x: float, y: float, radius: float, fill: str, stroke: str = "none") -> str:
    """Draw a filled circle around (x, y)."""
    return (
        f'<circle cx="{_n(x)}" cy="{_n(y)}" r="{_n(radius)}" '
        f'fill="{fill}" stroke="{stroke}"/>'
    )


def _n(value: float) -> str:
    """Write a coordinate with at most two decimals: nobody sees the third."""
    return f"{float(value):.2f}".rstrip("0").rstrip(".") or "0"
