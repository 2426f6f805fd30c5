"""A moving figure: sliders, a stack of pictures, and the words for each of them."""

import json
import re
from dataclasses import replace

import ipywidgets
import pytest

from flashlib import ArgumentError
from flashlib.plots import svg
from flashlib.widgets import MovingFigure, ch01
from flashlib.widgets import figure as module
from flashlib.widgets.catalogue import catalogue
from flashlib.widgets.figure import scrolling


def draw(state, alt):
    return svg.picture(100, 20, [svg.rect(0, 0, state["sum"], 5)], alt, state)


def figure(axes, **options):
    return MovingFigure(
        name="test-figure",
        page="notebooks/none",
        caption="A sum & a bar.",
        axes=axes,
        state=lambda *point: {"sum": sum(point), "point": list(point)},
        picture=draw,
        words=lambda state: f"The sum of {state['point']} is {state['sum']}.",
        check=lambda state, *point: None,
        **options,
    )


ONE = {"x": (1, 2, 5)}


TWO = {"x": (1, 2, 5), "y": (10, 20)}


def test_one_axis_stacks_a_picture_for_each_value():
    moving = figure(ONE)
    slider, stack = moving.widget().children
    assert [child.value for child in stack.children] == [
        scrolling(moving.frame(x).picture) for x in ONE["x"]
    ]
    assert slider.description == slider.tooltip == "x"
    assert [label for label, _ in slider.options] == ["1", "2", "5"]


def test_two_axes_nest_one_stack_in_the_other():
    moving = figure(TWO)
    *sliders, outer = moving.widget().children
    assert [slider.description for slider in sliders] == ["x", "y"]
    for x, inner in zip(TWO["x"], outer.children, strict=True):
        for y, child in zip(TWO["y"], inner.children, strict=True):
            assert child.value == scrolling(moving.frame(x, y).picture)


def test_start_chooses_the_first_picture():
    moving = figure(TWO, start=(2, 1))
    first, second, outer = moving.widget().children
    assert (first.index, second.index, outer.selected_index) == (2, 1, 2)
    assert [inner.selected_index for inner in outer.children] == [1, 1, 1]
    assert f"<noscript>{moving.frame(5, 20).picture}" in moving.storyboard()


def test_play_moves_the_last_axis():
    *_, player, _ = figure(TWO, play=True).widget().children
    assert isinstance(player, ipywidgets.Play)
    assert (player.min, player.max) == (0, 1)


def test_play_begins_where_the_figure_does():
    *_, player, _ = figure(TWO, play=True, start=(0, 1)).widget().children
    assert player.value == 1


def test_the_browser_links_sliders_pictures_and_player(monkeypatch):
    links = []
    monkeypatch.setattr(ipywidgets, "jslink", lambda *ends: links.append(ends))
    x, y, player, outer = figure(TWO, play=True).widget().children
    shown = [*((y, inner) for inner in outer.children), (x, outer)]
    want = [((slider, "index"), (stack, "selected_index")) for slider, stack in shown]
    assert links == [*want, ((player, "value"), (y, "index"))]


def test_a_cell_shows_the_widget_and_the_words_below_it(monkeypatch):
    shown, moving = [], figure(ONE)
    monkeypatch.setattr(module, "display", shown.append)
    moving._ipython_display_()
    widget, words = shown
    assert isinstance(widget, ipywidgets.VBox) and words.data == moving.storyboard()


def test_a_name_is_given_to_one_figure_only(monkeypatch):
    monkeypatch.setattr(ch01, "FIGURES", (lambda: figure(ONE), lambda: figure(ONE)))
    with pytest.raises(ArgumentError, match="name has 'test-figure' twice"):
        catalogue.__wrapped__()


def test_pictures_share_one_layout():
    _, stack = figure(ONE).widget().children
    assert len({child.layout.model_id for child in stack.children}) == 1


def test_a_frame_is_computed_once():
    calls = []
    moving = MovingFigure(
        name="counted",
        page="notebooks/none",
        caption="",
        axes=ONE,
        state=lambda x: calls.append(x) or {"sum": x},
        picture=draw,
        words=lambda state: "words",
        check=lambda state, x: None,
    )
    moving.widget()
    moving.storyboard()
    assert calls == [1, 2, 5]


@pytest.mark.parametrize("axes", [{}, {"x": (1,), "y": (1,), "z": (1,)}])
def test_axes_are_one_or_two(axes):
    with pytest.raises(ValueError, match="axes has . entries; expected one or two"):
        figure(axes)


def test_storyboard_says_every_state():
    text = figure(TWO).storyboard()
    items = re.findall(r"<li>(.*?)</li>", text)
    assert len(items) == 6
    assert items[0] == "x 1, y 10: The sum of [1, 10] is 11."
    assert "A sum &amp; a bar." in text


def test_storyboard_shows_words_as_they_are():
    moving = replace(figure({"a<b": (1,)}), words=lambda state: "1 < 2 & 3.")
    assert "<li>a&lt;b 1: 1 &lt; 2 &amp; 3.</li>" in moving.storyboard()


def test_picture_carries_its_state_and_its_words():
    picture = figure(ONE).frame(2).picture
    state = re.search(r'data-state="(.*?)"', picture).group(1).replace("&quot;", '"')
    assert json.loads(state) == {"point": [2], "sum": 2}
    assert 'role="img" aria-label="The sum of [2] is 2."' in picture
