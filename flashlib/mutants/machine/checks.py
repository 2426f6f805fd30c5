"""Checks of the machine's programs by their names, and a run over them (book)."""

from collections.abc import Callable, Mapping
from types import MappingProxyType


def named(*functions: Callable) -> Mapping[str, Callable]:
    """Return functions by their names, in the order given."""
    return MappingProxyType({function.__name__: function for function in functions})


def run_checks(checks: Mapping[str, Callable[[], None]]) -> dict[str, str]:
    """Run checks on the programs as they stand; return what each failure says."""
    found = {}
    for name, check in checks.items():
        try:
            check()
        except AssertionError as error:
            found[name] = str(error)
    return found
