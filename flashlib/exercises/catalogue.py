"""All exercises of the book by number (book)."""

import importlib
import pkgutil

from flashlib.errors import ArgumentError
from flashlib.exercises.exercise import Exercise


def catalogue() -> dict[str, Exercise]:
    """Return every exercise, from the ``EXERCISES`` of the chapter modules."""
    package = importlib.import_module(__package__)
    found: dict[str, Exercise] = {}
    for info in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{__package__}.{info.name}")
        for exercise in getattr(module, "EXERCISES", ()):
            if exercise.number in found:
                raise ArgumentError(
                    f"number has {exercise.number!r} twice; expected one exercise "
                    "each; a page finds an exercise by its number; renumber one"
                )
            found[exercise.number] = exercise
    return found
