"""A program for the machine with one function replaced, and its checks (book).

The machine runs it without complaint: every instruction is legal. What is wrong is
what the instructions add up to.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType, ModuleType

from flashlib.mutants.listing import (
    Listing,
    difference,
    fenced,
    fold_out,
    head_and_body,
)


# two of them are never the same one, whatever their fields
@dataclass(frozen=True, eq=False)
class Replaced:
    """A program with one function replaced.

    Parameters
    ----------
    chapter : int
        Where its fault is explained.
    owner : module or type
        Where the program looks the function up.
    step : str
        Its name there.
    wrong : callable
        What is called instead: its name is that of the fault, its docstring says
        in one sentence what is wrong.
    checks : mapping of str to callable
        What the program is held to.
    """

    chapter: int
    owner: ModuleType | type
    step: str
    wrong: Callable
    checks: Mapping[str, Callable[[], None]]

    @property
    def name(self) -> str:
        """The name of the fault."""
        return self.wrong.__name__

    @property
    def fault(self) -> str:
        """What is wrong, in one sentence."""
        return inspect.getdoc(self.wrong)

    @property
    def right(self) -> Callable:
        """The function that is replaced."""
        return getattr(self.owner, self.step)

    @property
    def place(self) -> str:
        """The full name of the function that is replaced."""
        return f"{self.right.__module__}.{self.right.__qualname__}"

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Put the wrong function where the program looks for the right one.

        For one thread at a time: the program is wrong for everybody meanwhile.
        """
        right = self.right
        setattr(self.owner, self.step, self.wrong)
        try:
            yield
        finally:
            setattr(self.owner, self.step, right)

    def source(self) -> Listing:
        """Return the body of the wrong function as a difference from the right one.

        A function that calls the right one is shown as it stands.
        """
        wrong = _body(self.wrong)
        if self.step in self.wrong.__code__.co_names:
            return fenced("python", [f"# in place of {self.place}", *wrong])
        lines = difference(_body(self.right), wrong)
        return fenced("diff", [f"@@ {self.place} @@", *lines])

    def failures(self) -> dict[str, str]:
        """Run every check and return the message of each that fails, by its name."""
        return dict(_failures(self))

    def killed_by(self) -> tuple[str, ...]:
        """Run every check and name those that fail."""
        return tuple(_failures(self))

    def exhibit(self) -> Listing:
        """Return a fold-out: the fault, the changed lines, and what catches it."""
        return fold_out(self.name, self.fault, self.source(), self.failures())


def _body(function: Callable) -> list[str]:
    """Return what a function does, without the indentation."""
    _, body = head_and_body(function)
    return textwrap.dedent("\n".join(body)).splitlines()


@cache
def _failures(program: Replaced) -> Mapping[str, str]:
    """Run the checks once for each program; a wrong one does not change."""
    with program.in_place():
        return MappingProxyType(run_checks(program.checks))


def run_checks(checks: Mapping[str, Callable[[], None]]) -> dict[str, str]:
    """Run checks on the programs as they stand; return what each failure says."""
    found = {}
    for name, check in checks.items():
        try:
            check()
        except AssertionError as error:
            found[name] = str(error)
    return found


def named(*functions: Callable) -> Mapping[str, Callable]:
    """Return functions by their names, in the order given."""
    return MappingProxyType({function.__name__: function for function in functions})


def wing(
    checks: Mapping[str, Callable[[], None]],
    *faults: tuple[int, ModuleType | type, str, Callable],
) -> Mapping[str, Replaced]:
    """Return wrong programs by their names, all held to the same checks.

    Parameters
    ----------
    checks : mapping of str to callable
        As `named` returns them.
    faults : tuple
        Chapter, owner, step and wrong function of each.
    """
    programs = [Replaced(*fault, checks) for fault in faults]
    return MappingProxyType({program.name: program for program in programs})
