"""A program for the machine with one function replaced, and its checks (book).

The machine runs it without complaint: every instruction is legal. What is wrong is
what the instructions add up to.
"""

import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType, ModuleType

from flashlib.mutants.listing import Listing, difference, fenced, head_and_body
from flashlib.mutants.machine.checks import run_checks
from flashlib.mutants.mutant import Mutant


@dataclass(frozen=True, eq=False)
class WrongProgram(Mutant):
    """A program with one function replaced.

    Parameters
    ----------
    name, chapter, fault
        As in `flashlib.mutants.Mutant`.
    owner : module or type
        Where the program looks the function up.
    step : str
        Its name there.
    wrong : callable
        What is called instead.
    checks : mapping of str to callable
        What the program is held to.
    """

    owner: ModuleType | type
    step: str
    wrong: Callable
    checks: Mapping[str, Callable[[], None]]

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

    def run(self) -> dict[str, str]:
        """Run the program's checks; return what each failure says."""
        with self.in_place():
            return run_checks(self.checks)


def _body(function: Callable) -> list[str]:
    """Return what a function does, without the indentation."""
    _, body = head_and_body(function)
    return textwrap.dedent("\n".join(body)).splitlines()


def wing(
    checks: Mapping[str, Callable[[], None]],
    *faults: tuple[int, ModuleType | type, str, Callable],
) -> Mapping[str, WrongProgram]:
    """Return wrong programs by their names, all held to the same checks.

    Parameters
    ----------
    checks : mapping of str to callable
        As `flashlib.mutants.machine.checks.named` returns them.
    faults : tuple
        Chapter, owner, step and wrong function of each. The function gives the fault
        its name; its docstring says in one sentence what is wrong.
    """
    programs = {}
    for chapter, owner, step, wrong in faults:
        name, fault = wrong.__name__, inspect.getdoc(wrong)
        programs[name] = WrongProgram(name, chapter, fault, owner, step, wrong, checks)
    return MappingProxyType(programs)
