"""Figures that move with a slider, with a kernel and without one (book)."""

from flashlib.widgets.catalogue import catalogue
from flashlib.widgets.figure import Frame, MovingFigure
from flashlib.widgets.refusal import refusal
from flashlib.widgets.source import source

__all__ = ["Frame", "MovingFigure", "catalogue", "refusal", "source"]
