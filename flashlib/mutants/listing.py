"""Show wrong code: the difference from right code, and a fold-out around it (book)."""

import ast
import html
import inspect
import textwrap
from collections.abc import Callable, Iterable, Mapping
from difflib import SequenceMatcher

SHOWN = 3  # failures that an exhibit spells out


class Listing(str):
    """A piece of Markdown that a notebook shows as such."""

    __slots__ = ()

    def _repr_markdown_(self) -> str:
        return str(self)


def fenced(language: str, lines: Iterable[str]) -> Listing:
    """Put lines of code into a fence."""
    return Listing("\n".join([f"```{language}", *lines, "```"]))


def head_and_body(function: Callable) -> tuple[list[str], list[str]]:
    """Return the lines of a signature and those below it, without the docstring."""
    lines = textwrap.dedent(inspect.getsource(function)).splitlines()
    first = ast.parse("\n".join(lines)).body[0].body[0]
    start = first.lineno - 1
    return lines[:start], lines[first.end_lineno if function.__doc__ else start :]


def difference(right: list[str], wrong: list[str]) -> list[str]:
    """Mark what is right and gone with ``-``, and the fault with ``+``."""
    lines = []
    for kind, a, b, c, d in SequenceMatcher(None, right, wrong).get_opcodes():
        if kind == "equal":
            lines += [f"  {line}" for line in right[a:b]]
        else:
            lines += [f"- {line}" for line in right[a:b]]
            lines += [f"+ {line}" for line in wrong[c:d]]
    return [line.rstrip() for line in lines]


def fold_out(
    name: str, fault: str, source: str, found: Mapping[str, str], aside: str = ""
) -> Listing:
    """Return a fold-out: the fault, the changed lines, and what catches it.

    Parameters
    ----------
    name, fault : str
        They stand on the outside.
    source : str
        The changed lines, as Markdown.
    found : mapping of str to str
        What each check says that catches it; the first of them are shown.
    aside : str
        Added to the number of checks.
    """
    count = "1 check" if len(found) == 1 else f"{len(found)} checks"
    messages = "\n".join(
        f"- `{check}`: {message}" for check, message in list(found.items())[:SHOWN]
    )
    more = f"\n- and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return Listing(
        f"<details><summary><code>{name}</code> {html.escape(fault)}</summary>\n\n"
        f"{source}\n\nCaught by {count}{aside}:\n\n{messages}{more}\n\n</details>"
    )
