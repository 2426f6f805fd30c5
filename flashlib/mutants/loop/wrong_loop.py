"""A loop with one method replaced, held to the contract (book)."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from flashlib.contract import failures
from flashlib.mutants.listing import Listing, difference, fenced, head_and_body
from flashlib.mutants.loop.plain import PlainLoop
from flashlib.mutants.mutant import Mutant


@dataclass(frozen=True, eq=False)
class WrongLoop(Mutant):
    """A copy of a right loop, but for its fault.

    Parameters
    ----------
    name, chapter, fault
        As in `flashlib.mutants.Mutant`.
    attention : PlainLoop
        Called like `flashlib.flash_attention`.
    """

    attention: PlainLoop

    @property
    def right(self) -> type[PlainLoop]:
        """The right loop."""
        return type(self.attention).__base__

    def changed(self) -> tuple[str, ...]:
        """Name the methods of the right loop that are replaced."""
        own = vars(type(self.attention))
        return tuple(
            name for name in own if hasattr(self.right, name) and name[0] != "_"
        )

    def source(self) -> Listing:
        """Return the changed methods as a difference from the right ones."""
        lines = []
        for name in self.changed():
            right, wrong = (
                sum(head_and_body(getattr(owner, name)), [])
                for owner in (self.right, type(self.attention))
            )
            lines += ([""] if lines else []) + difference(right, wrong)
        return fenced("diff", lines)

    def run(self) -> dict[str, str]:
        """Run every check of `flashlib.contract`; return what each failure says."""
        return failures(self.attention)

    def aside(self) -> str:
        """Say in an exhibit where the check that the source published lets it pass."""
        seen = "published" in self.failures()
        return "" if seen else ", and not by the published one"


def wing(chapter: int, loops: Mapping[str, type[PlainLoop]]) -> Mapping[str, WrongLoop]:
    """Return the wrong loops of one chapter by their names.

    Parameters
    ----------
    chapter : int
        Where their faults are explained.
    loops : mapping of str to type
        Subclasses of a right loop, each with its fault as its docstring.
    """
    return MappingProxyType(
        {
            name: WrongLoop(name, chapter, inspect.getdoc(loop), loop())
            for name, loop in loops.items()
        }
    )
