"""Drawings as text: what a reader sees of each part, and what a test reads back."""

import json
from xml.etree import ElementTree

import pytest

from flashlib.plots import svg

SVG = "{http://www.w3.org/2000/svg}"


def drawn(*parts, alt="A bar.", state=None, **options):
    """Return the element of a drawing of 100 by 20 pixels."""
    return ElementTree.fromstring(
        svg.picture(100, 20, parts, alt, state or {}, **options)
    )


def test_words_and_state_come_back_whatever_they_hold():
    alt, state = 'a < b & "c"', {"b": "</svg>", "a": [1, 2.5]}
    picture = drawn(svg.text(0, 0, alt), alt=alt, state=state)
    assert picture.get("aria-label") == picture.find(f"{SVG}text").text == alt
    assert json.loads(picture.get("data-state")) == state
    assert list(json.loads(picture.get("data-state"))) == ["a", "b"]


def test_a_larger_drawing_has_the_same_coordinates():
    picture = drawn(scale=2)
    assert picture.get("viewBox") == "0 0 100 20" and picture.get("width") == "200"
    assert "--fl-width:100px" in picture.get("style")


def test_a_rectangle_has_no_size_below_0():
    (box,) = drawn(svg.rect(1, 2, -3, -4))
    assert (box.get("width"), box.get("height")) == ("0", "0")


def test_what_differs_from_the_usual_line_is_written_down():
    plain, dashed, faint = drawn(
        svg.rect(0, 0, 1, 1),
        svg.rect(0, 0, 1, 1, dash="3 2"),
        svg.rect(0, 0, 1, 1, opacity=0.5),
    )
    extras = [(x.get("stroke-dasharray"), x.get("opacity")) for x in (plain, dashed)]
    assert extras == [(None, None), ("3 2", None)]
    assert faint.get("opacity") == "0.5"
    (line,) = drawn(svg.line(0, 0, 1, 1, dash="3 2", width=2))
    assert (line.get("stroke-dasharray"), line.get("stroke-width")) == ("3 2", "2")


def test_text_may_be_bold_and_keep_lines_behind_it_away():
    plain, bold, clear = drawn(
        svg.text(0, 0, "a"),
        svg.text(0, 0, "a", weight="bold"),
        svg.text(0, 0, "a", halo=True),
    )
    assert [x.get("font-weight") for x in (plain, bold)] == [None, "bold"]
    assert plain.get("paint-order") is None
    assert (clear.get("paint-order"), clear.get("stroke")) == ("stroke", svg.PAPER)


@pytest.mark.parametrize(
    "value, said",
    [
        (0, "0"),
        (-0.001, "-0"),
        (10, "10"),
        (2.5, "2.5"),
        (1.236, "1.24"),
        (100.0, "100"),
    ],
)
def test_coordinates_have_two_decimals_at_most(value, said):
    (line,) = drawn(svg.polyline([(value, 1)]))
    assert line.get("points") == f"{said},1"


def test_a_circle_is_where_it_is_put():
    (circle,) = drawn(svg.circle(1, 2, 3, svg.BLUE))
    assert [circle.get(name) for name in ("cx", "cy", "r", "fill")] == [
        *("1", "2", "3", svg.BLUE)
    ]
