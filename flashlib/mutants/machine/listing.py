"""Show wrong programs for the machine: a table, and fold-outs by chapter (book)."""

from collections.abc import Mapping
from itertools import groupby

from flashlib.mutants.listing import Listing
from flashlib.mutants.machine.wrong_program import WrongProgram


def replacements(
    programs: Mapping[str, WrongProgram], pages: Mapping[int, str]
) -> Listing:
    """Return a Markdown table: what is wrong, and the function that it replaces.

    The modules of `flashlib.programs` are shown without that prefix.

    Parameters
    ----------
    programs : mapping of str to WrongProgram
        The rows, in their order.
    pages : mapping of int to str
        File name of the page of a chapter; a chapter without one is not linked.
    """
    lines = ["| fault | in place of |", "|:--|:--|"]
    for name, wrong in programs.items():
        module = wrong.right.__module__
        short = module.removeprefix("flashlib.programs.")
        lines.append(
            f"| `{name}`<br>{wrong.fault} {_chapter(wrong.chapter, pages)} "
            f"| `{wrong.right.__qualname__}`<br>"
            f"{{py:mod}}`{short} <{module}>` |"
        )
    return Listing("\n".join(lines))


def exhibits(programs: Mapping[str, WrongProgram], pages: Mapping[int, str]) -> Listing:
    """Return the fold-outs of wrong programs under the chapters they belong to.

    Parameters
    ----------
    programs : mapping of str to WrongProgram
        In the order of their chapters.
    pages : mapping of int to str
        File name of the page of a chapter.
    """
    blocks = []
    for chapter, group in groupby(programs.values(), lambda wrong: wrong.chapter):
        blocks.append(_chapter(chapter, pages))
        blocks += [wrong.exhibit() for wrong in group]
    return Listing("\n\n".join(blocks))


def _chapter(number: int, pages: Mapping[int, str]) -> str:
    words = f"Chapter {number}"
    return f"[{words}]({pages[number]})" if number in pages else words
