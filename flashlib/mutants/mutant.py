"""One exhibit: a wrong kernel, its fault in a sentence, and what catches it (book)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from flashlib.contract import failures
from flashlib.mutants.listing import (
    Listing,
    difference,
    fenced,
    fold_out,
    head_and_body,
)
from flashlib.mutants.loop import PlainLoop


@dataclass(frozen=True)
class Mutant:
    """A wrong kernel of the museum.

    Parameters
    ----------
    name : str
        As in `flashlib.mutants.MUTANTS`.
    chapter : int
        Where its fault is explained.
    fault : str
        What is wrong, in one sentence.
    attention : PlainLoop
        Called like `flashlib.flash_attention`.
    """

    name: str
    chapter: int
    fault: str
    attention: PlainLoop

    def source(self) -> Listing:
        """Return the changed method as a difference from the right one.

        Lines that begin with ``-`` are right and gone, lines that begin with ``+`` are
        the fault.
        """
        lines = []
        for name in self.changed():
            right, wrong = (
                sum(head_and_body(getattr(owner, name)), [])
                for owner in (self.right, type(self.attention))
            )
            lines += ([""] if lines else []) + difference(right, wrong)
        return fenced("diff", lines)

    def changed(self) -> tuple[str, ...]:
        """Name the methods of the right loop that this mutant replaces."""
        own = vars(type(self.attention))
        return tuple(
            name for name in own if hasattr(self.right, name) and name[0] != "_"
        )

    @property
    def right(self) -> type[PlainLoop]:
        """The right loop that this mutant is a copy of, but for its fault."""
        return type(self.attention).__base__

    def killed_by(self) -> tuple[str, ...]:
        """Run every check of `flashlib.contract` and name those that fail."""
        return tuple(self.failures())

    def failures(self) -> Mapping[str, str]:
        """Run every check and return the message of each that fails, by its name."""
        return _failures(self)

    def exhibit(self) -> Listing:
        """Return a fold-out: the fault, the changed lines, and what catches it."""
        found = self.failures()
        aside = "" if "published" in found else ", and not by the published one"
        return fold_out(self.name, self.fault, self.source(), found, aside)


@cache
def _failures(mutant: Mutant) -> Mapping[str, str]:
    """Run the checks once for each mutant; a wrong kernel does not change."""
    return MappingProxyType(failures(mutant.attention))
