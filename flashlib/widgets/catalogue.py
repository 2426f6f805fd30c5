"""All moving figures of the book by name (book)."""

import importlib
import pkgutil
from functools import cache
from types import MappingProxyType

from flashlib.errors import ArgumentError
from flashlib.widgets.figure import MovingFigure


@cache
def catalogue() -> MappingProxyType[str, MovingFigure]:
    """Return every moving figure, from the ``FIGURES`` of the chapter modules.

    A chapter module is ``flashlib.widgets.chNN`` (or ``tour``); its ``FIGURES`` is a
    tuple of functions without arguments that each return a `MovingFigure`.
    """
    package = importlib.import_module(__package__)
    found: dict[str, MovingFigure] = {}
    for info in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{__package__}.{info.name}")
        for make in getattr(module, "FIGURES", ()):
            figure = make()
            if figure.name in found:
                raise ArgumentError(
                    f"name has {figure.name!r} twice; expected one figure "
                    "each; a page finds a figure by its name; rename one"
                )
            found[figure.name] = figure
    return MappingProxyType(found)
