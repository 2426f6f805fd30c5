"""Every state of every moving figure, replayed against the package."""

import importlib
import json
import pkgutil
import re
from pathlib import Path
from xml.etree import ElementTree

import nbformat
import pytest

import flashlib.widgets
from flashlib.widgets import catalogue
from flashlib.widgets.figure import MAX_BYTES, MAX_FRAMES, scrolling

ROOT = Path(__file__).resolve().parent.parent
SVG = "{http://www.w3.org/2000/svg}"
FIGURES = catalogue()


def replay(figure):
    """Yield every point of a figure with its state, picture and words made anew."""
    for point in figure.points():
        state = figure.state(*point)
        words = figure.words(state)
        yield point, state, figure.picture(state, words), words


def shown_pictures(figure):
    """Return the pictures that the widget stacks, in the order of the points."""
    *_, stack = figure.widget().children
    if len(figure.axes) == 1:
        return [child.value for child in stack.children]
    return [child.value for inner in stack.children for child in inner.children]


@pytest.fixture(params=sorted(FIGURES))
def figure(request):
    return FIGURES[request.param]


def test_there_is_a_figure_for_every_chapter_module():
    for info in pkgutil.iter_modules(flashlib.widgets.__path__):
        if re.fullmatch(r"ch\d\d", info.name):
            assert any(name.startswith(info.name) for name in FIGURES), info.name


def test_widget_shows_the_picture_of_every_state(figure):
    pictures = [scrolling(picture) for _, _, picture, _ in replay(figure)]
    assert shown_pictures(figure) == pictures


def test_every_state_holds_against_another_route(figure):
    for point, state, _, _ in replay(figure):
        figure.check(state, *point)


def test_every_picture_carries_its_state_and_its_words(figure):
    for point, state, picture, words in replay(figure):
        svg = ElementTree.fromstring(picture)
        assert svg.get("role") == "img"
        assert svg.get("aria-label") == words, point
        carried = json.loads(svg.get("data-state"))
        whole = json.loads(json.dumps(state, allow_nan=False))
        assert carried and carried.items() <= whole.items(), point


def test_words_tell_states_apart(figure):
    told = {}
    for point, state, _, words in replay(figure):
        assert words == words.strip() and words.endswith("."), point
        written = json.dumps(state, sort_keys=True)
        assert told.setdefault(words, written) == written, point


def test_storyboard_holds_every_state(figure):
    storyboard = figure.storyboard()
    tree = ElementTree.fromstring(storyboard)
    items = ["".join(item.itertext()) for item in tree.iter("li")]
    words = [words for *_, words in replay(figure)]
    assert len(items) == len(words)
    for item, said in zip(items, words, strict=True):
        assert item.endswith(f": {said}")
    assert figure.caption in "".join(tree.itertext())


def test_figure_is_small(figure):
    pictures = shown_pictures(figure)
    assert len(pictures) < MAX_FRAMES
    assert sum(len(picture.encode()) for picture in pictures) < MAX_BYTES


def test_pictures_follow_the_page(figure):
    """No color but those of the style sheet, no small print, no wide drawing."""
    for point, _, picture, _ in replay(figure):
        bare = re.sub(r"var\(--fl-\w+, [^)]+\)", "none", picture)
        assert not re.search(r'(?:fill|stroke)="(?!none")', bare), point
        svg = ElementTree.fromstring(picture)
        assert float(svg.get("width")) <= 640
        for text in svg.iter(f"{SVG}text"):
            assert float(text.get("font-size")) >= 11, (point, text.text)


def makers():
    """Return the function behind each figure, as its chapter calls it."""
    for info in pkgutil.iter_modules(flashlib.widgets.__path__):
        module = importlib.import_module(f"flashlib.widgets.{info.name}")
        for make in getattr(module, "FIGURES", ()):
            yield make().name, make.__name__


@pytest.mark.parametrize(("name", "maker"), list(makers()))
def test_page_shows_the_figure(name, maker):
    page = ROOT / f"{FIGURES[name].page}.ipynb"
    cells = nbformat.read(page, as_version=4).cells
    code = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    assert re.search(rf"\b{maker}\(\)", code), f"{page.name} does not call {maker}()"
