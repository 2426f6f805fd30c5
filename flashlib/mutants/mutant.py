"""One exhibit: a wrong kernel, its fault in a sentence, and what catches it (book)."""

from __future__ import annotations

import difflib
import html
import inspect
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from flashlib.contract import failures
from flashlib.mutants.loop import PlainLoop

SHOWN = 3  # failures that an exhibit spells out


class Listing(str):
    """A piece of Markdown that a notebook shows as such."""

    __slots__ = ()

    def _repr_markdown_(self) -> str:
        return str(self)


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
        blocks = []
        for name in self.changed():
            right, wrong = (
                _code(getattr(owner, name))
                for owner in (self.right, type(self.attention))
            )
            lines = list(difflib.ndiff(right, wrong))
            blocks.append("\n".join(x.rstrip() for x in lines if not x.startswith("?")))
        body = "\n\n".join(blocks)
        return Listing(f"```diff\n{body}\n```")

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
        count = "1 check" if len(found) == 1 else f"{len(found)} checks"
        missed = "" if "published" in found else ", and not by the published one"
        messages = "\n".join(
            f"- `{name}`: {message}" for name, message in list(found.items())[:SHOWN]
        )
        more = f"\n- and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        return Listing(
            f"<details><summary><code>{self.name}</code> {html.escape(self.fault)}"
            f"</summary>\n\n{self.source()}\n\n"
            f"Caught by {count}{missed}:\n\n{messages}{more}\n\n</details>"
        )


@cache
def _failures(mutant: Mutant) -> Mapping[str, str]:
    """Run the checks once for each mutant; a wrong kernel does not change."""
    return MappingProxyType(failures(mutant.attention))


def _code(method: object) -> list[str]:
    """Return the source of a method without its docstring, which did not change."""
    code = textwrap.dedent(inspect.getsource(method))
    if method.__doc__:
        quote = code.index('"""')
        end = code.index('"""', quote + 3) + 3
        code = code[:quote].rstrip() + code[end:]
    return code.rstrip().splitlines()
