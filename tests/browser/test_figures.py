"""Every moving figure, moved with the keyboard, shows what Python replays."""

import json

import chromium
import pytest

from flashlib.widgets import catalogue

FIGURES = catalogue()
# the output area that holds a figure's sliders, pictures and storyboard
PLACE = "name => document.getElementById(name).closest('.cell_output')"
SHOWN = """(place) => {
  const all = [...place.querySelectorAll("svg.fl-picture")];
  const shown = all.filter((svg) => svg.checkVisibility());
  return shown.map((svg) => [svg.dataset.state, svg.outerHTML, svg.ariaLabel]);
}"""
SAID = """(handle) => [handle.ariaLabel, handle.ariaValueText]"""
TITLES = """(place) => [...place.querySelectorAll(".widget-slider label")].map(
  (label) => label.title)"""
# one figure with a slider, one with two; on a phone both go on to the right
SCROLLING = ("ch04-scrubber", "ch01-row")
FRAME = f"""name => [...({PLACE})(name).querySelectorAll(".fl-scroll")].find(
  (frame) => frame.checkVisibility())"""
SETTLE = "() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)))"


def shown(page, place):
    """Return the state, drawing and words of the one picture on display."""
    page.evaluate(SETTLE)
    ((state, drawing, words),) = place.evaluate(SHOWN)
    return json.loads(state), drawing, words


def walk(lengths):
    """Yield every index tuple with the ``(axis, key)`` presses that lead to it.

    The last axis sweeps to and fro, so that each step is one press of a key.
    """
    if len(lengths) == 1:
        for i in range(lengths[0]):
            yield (i,), [(0, "ArrowRight")] if i else []
        return
    for i in range(lengths[0]):
        inner = range(lengths[1]) if i % 2 == 0 else range(lengths[1])[::-1]
        for step, j in enumerate(inner):
            key = "ArrowRight" if i % 2 == 0 else "ArrowLeft"
            first = [(0, "ArrowRight")] if i else []
            yield (i, j), [(1, key)] if step else first


@pytest.mark.parametrize("name", FIGURES)
def test_figure_shows_what_python_replays(page, base, name):
    figure = FIGURES[name]
    chromium.show(page, f"{base}/{figure.page}.html", 1280, "light")
    place = page.evaluate_handle(PLACE, name).as_element()
    handles = place.query_selector_all(".noUi-handle")
    axes = list(figure.axes.values())
    assert len(handles) == len(axes)
    assert place.evaluate(TITLES) == list(figure.axes)
    for handle in handles:
        handle.press("Home")
    seen = set()
    for index, presses in walk([len(axis) for axis in axes]):
        for axis, key in presses:
            handles[axis].press(key)
        point = tuple(axis[i] for axis, i in zip(axes, index, strict=True))
        frame = figure.frame(*point)
        figure.check(frame.state, *point)
        state, drawing, words = shown(page, place)
        replayed = json.loads(json.dumps(frame.state))
        assert state and state == {key: replayed[key] for key in state}, point
        assert words == frame.words, point
        said = [handle.evaluate(SAID) for handle in handles]
        names = zip(figure.axes, map(str, point), strict=True)
        assert said == [list(pair) for pair in names], point
        seen.add(drawing)
    assert len(seen) > 1
    distinct = {figure.frame(*point).picture for point in figure.points()}
    assert len(seen) == len(distinct)
    assert page.faults == []


@pytest.mark.parametrize("name", [n for n in FIGURES if FIGURES[n].play])
def test_play_moves_the_picture(page, base, name):
    figure = FIGURES[name]
    chromium.show(page, f"{base}/{figure.page}.html", 1280, "light")
    place = page.evaluate_handle(PLACE, name).as_element()
    before = shown(page, place)[0]
    place.query_selector(".widget-play button").click()
    page.wait_for_function(
        """([name, before]) => {
          const place = document.getElementById(name).closest(".cell_output");
          const shown = [...place.querySelectorAll("svg.fl-picture")].find(
            (svg) => svg.checkVisibility());
          return shown && shown.dataset.state !== before;
        }""",
        arg=[name, json.dumps(before, sort_keys=True)],
        timeout=10_000,
    )
    assert page.faults == []


@pytest.mark.parametrize("name", SCROLLING)
def test_a_new_picture_stays_where_the_reader_has_scrolled(page, base, name):
    chromium.show(page, f"{base}/{FIGURES[name].page}.html", 390, "light")
    old = page.evaluate_handle(FRAME, name).as_element()
    old.evaluate("(frame) => { frame.scrollLeft = 100; }")
    place = page.evaluate_handle(PLACE, name).as_element()
    for handle in place.query_selector_all(".noUi-handle"):
        page.evaluate(SETTLE)
        handle.press("ArrowRight")
        page.evaluate(SETTLE)
        new = page.evaluate_handle(FRAME, name).as_element()
        assert new.evaluate("(frame, old) => frame !== old", old)
        assert new.evaluate("(frame) => frame.scrollLeft") == 100
        old = new
    assert page.faults == []
