"""Take one measurement, or list them: ``python -m flashlib.measure`` (book)."""

import sys
from collections.abc import Sequence
from importlib import import_module

from flashlib.errors import ArgumentError
from flashlib.measure import MEASUREMENTS

__all__ = ["listing", "main"]


def listing() -> str:
    """Return a line for each measurement: its name and what it measures."""
    width = max(map(len, MEASUREMENTS))
    docs = {name: _module(name).__doc__ for name in MEASUREMENTS}
    lines = (f"{n:{width}}  {doc.partition(':')[0]}" for n, doc in docs.items())
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the measurement that the first argument names with the others, or list all.

    Raises
    ------
    ArgumentError
        If there is no such measurement.
    """
    name, *rest = (sys.argv[1:] if arguments is None else arguments) or [""]
    if not name:
        print(listing())
        return
    if name not in MEASUREMENTS:
        known = ", ".join(MEASUREMENTS)
        raise ArgumentError(
            f"name has {name!r}; expected one of {known}; a measurement is a module "
            "of flashlib.measure; python -m flashlib.measure says what each is"
        )
    _module(name).main(rest)


def _module(name: str):
    return import_module(f"flashlib.measure.{name}")


if __name__ == "__main__":
    try:
        main()
    except ArgumentError as error:
        sys.exit(str(error))
