"""Figures that move with a slider, with a kernel and without one (book)."""

from .catalogue import catalogue
from .figure import Frame, MovingFigure
from .source import source

__all__ = ["Frame", "MovingFigure", "catalogue", "source"]
