"""What every mutant has: a fault in one sentence, source, what catches it (book)."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from flashlib.mutants.listing import Listing, fold_out


# two of them are never the same one, whatever their fields
@dataclass(frozen=True, eq=False)
class Mutant(ABC):
    """Wrong code of the museum: a loop of the engine, or a program of the machine.

    Parameters
    ----------
    name : str
        As in `flashlib.mutants.MUTANTS` or `flashlib.mutants.MACHINE_MUTANTS`.
    chapter : int
        Where its fault is explained.
    fault : str
        What is wrong, in one sentence.
    """

    name: str
    chapter: int
    fault: str

    @abstractmethod
    def source(self) -> Listing:
        """Return the fault as a difference from the right code.

        Lines that begin with ``-`` are right and gone, lines that begin with ``+`` are
        the fault.
        """

    @abstractmethod
    def run(self) -> Mapping[str, str]:
        """Run every check that it is held to; return what each failure says."""

    def failures(self) -> Mapping[str, str]:
        """Return the message of each check that fails, by its name."""
        return _failures(self)

    def killed_by(self) -> tuple[str, ...]:
        """Name the checks that fail."""
        return tuple(self.failures())

    def exhibit(self) -> Listing:
        """Return a fold-out: the fault, the changed lines, and what catches it."""
        return fold_out(
            self.name, self.fault, self.source(), self.failures(), self.aside()
        )

    def aside(self) -> str:
        """Return what an exhibit adds to the number of checks; nothing, usually."""
        return ""


@cache
def _failures(mutant: Mutant) -> Mapping[str, str]:
    """Run the checks once for each mutant; wrong code does not change."""
    return MappingProxyType(mutant.run())
