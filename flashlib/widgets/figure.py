"""One moving figure: states from the package, a picture and a sentence for each (book).

All pictures are drawn beforehand and the sliders choose among them in the browser
(``jslink``), so a figure behaves the same in JupyterLab and in the built page, where
there is no kernel. Under it stands a storyboard that says every state in words, from
the same states as the pictures; it is plain HTML and needs no script.
"""

import html
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import NamedTuple

import ipywidgets
from IPython.display import HTML, display

from flashlib.errors import ArgumentError

MAX_FRAMES = 100
MAX_BYTES = 300_000


class Frame(NamedTuple):
    """One state of a figure with its picture and its words."""

    state: Mapping[str, object]
    picture: str
    words: str


@dataclass(frozen=True)
class MovingFigure:
    """A figure with one or two sliders.

    Parameters
    ----------
    name : str
        Unique, starts with the chapter: ``"ch04-scrubber"``.
    page : str
        The page that shows it, such as ``"notebooks/04_online_softmax"``.
    caption : str
        What to see, in one or two sentences.
    axes : mapping of str to sequence
        Slider labels and their values, one or two; labels are read by people.
    state : callable
        ``state(*point) -> dict`` of plain numbers, strings and lists, computed by the
        package at one point of the axes (values in the order of `axes`).
    picture : callable
        ``picture(state, alt) -> str``: the SVG of a state (see `flashlib.plots.svg`).
    words : callable
        ``words(state) -> str``: the same state in a sentence; it is the picture's
        alternative text and its line in the storyboard.
    check : callable
        ``check(state, *point)``: asserts the state against another route through the
        package, so that no figure shows what the package does not compute.
    start : tuple of int, optional
        Index of the first state shown, per axis; zeros by default.
    play : bool
        Add play buttons for the last axis.
    """

    name: str
    page: str
    caption: str
    axes: Mapping[str, Sequence]
    state: Callable[..., Mapping[str, object]]
    picture: Callable[[Mapping[str, object], str], str]
    words: Callable[[Mapping[str, object]], str]
    check: Callable[..., None]
    start: tuple[int, ...] = ()
    play: bool = False
    _frames: dict = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not 1 <= len(self.axes) <= 2:
            raise ArgumentError(
                f"axes has {len(self.axes)} entries; expected one or two; "
                "a figure has a slider per axis; drop the others"
            )
        if not self.start:
            object.__setattr__(self, "start", (0,) * len(self.axes))

    def points(self) -> Iterator[tuple]:
        """Yield every point of the axes, the last axis running fastest."""
        return product(*self.axes.values())

    def frame(self, *point: object) -> Frame:
        """Return the state, picture and words at one point."""
        if point not in self._frames:
            state = self.state(*point)
            words = self.words(state)
            self._frames[point] = Frame(state, self.picture(state, words), words)
        return self._frames[point]

    def widget(self) -> ipywidgets.VBox:
        """Build the sliders over a stack of pictures."""
        names, values = list(self.axes), list(self.axes.values())
        sliders = [
            ipywidgets.SelectionSlider(
                options=[(str(v), i) for i, v in enumerate(axis)],
                value=first,
                description=name,
                tooltip=name,  # else the label says "null" under the pointer
                style={"description_width": "initial"},
                layout={"width": "min(100%, 480px)"},
            )
            for name, axis, first in zip(names, values, self.start, strict=True)
        ]
        stack = self._stack(values, sliders)
        controls = [*sliders, *([self._player(sliders[-1])] if self.play else [])]
        return ipywidgets.VBox([*controls, stack])

    def _stack(self, values: list, sliders: list) -> ipywidgets.Stack:
        """Stack the pictures, nested once for two axes, and link the sliders."""
        one = ipywidgets.HTML()
        # One shared layout and style: else each picture carries 1.5 kB of its own.
        shared = {"layout": one.layout, "style": one.style}

        def row(head: tuple) -> ipywidgets.Stack:
            pictures = [
                ipywidgets.HTML(scrolling(self.frame(*head, v).picture), **shared)
                for v in values[-1]
            ]
            return _linked(pictures, sliders[-1], self.start[-1])

        if len(values) == 1:
            return row(())
        return _linked([row((v,)) for v in values[0]], sliders[0], self.start[0])

    def _player(self, slider: ipywidgets.SelectionSlider) -> ipywidgets.Play:
        count = len(slider.options)
        player = ipywidgets.Play(value=slider.index, max=count - 1, interval=700)
        ipywidgets.jslink((player, "value"), (slider, "index"))
        return player

    def storyboard(self) -> str:
        """Return the caption, and every state in words, as HTML."""
        items = "".join(
            f"<li>{html.escape(self._label(point))}: "
            f"{html.escape(self.frame(*point).words)}</li>"
            for point in self.points()
        )
        first = self.frame(
            *(axis[i] for axis, i in zip(self.axes.values(), self.start, strict=True))
        )
        return (
            f'<figure class="fl-figure" id="{self.name}">'
            f"<noscript>{first.picture}</noscript>"
            f"<figcaption>{html.escape(self.caption)}</figcaption>"
            f'<details class="fl-storyboard"><summary>The same figure in words'
            f"</summary><ol>{items}</ol></details></figure>"
        )

    def _label(self, point: tuple) -> str:
        pairs = zip(self.axes, point, strict=True)
        return ", ".join(f"{name} {value}" for name, value in pairs)

    def _ipython_display_(self) -> None:
        display(self.widget())
        display(HTML(self.storyboard()))


def scrolling(picture: str) -> str:
    """Let a phone scroll a picture sideways; the style sheet says from which width."""
    return f'<div class="fl-scroll" tabindex="0">{picture}</div>'


def _linked(children: list, slider: ipywidgets.SelectionSlider, first: int):
    """Stack children and let the slider choose among them in the browser."""
    stack = ipywidgets.Stack(children, selected_index=first)
    ipywidgets.jslink((slider, "index"), (stack, "selected_index"))
    return stack
