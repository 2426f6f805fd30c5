"""Write the ledger as tables that fit a narrow page (book)."""

from collections.abc import Iterable, Mapping

from flashlib.ledger.rows import Claim, Finding

MARKS = {"reproduced": "✓", "contradicted": "✗", "not testable here": "–"}


def decided_table(
    findings: Iterable[tuple[Claim, Finding]], pages: Mapping[int, str]
) -> str:
    """Return a Markdown table of the rows with a verdict.

    Parameters
    ----------
    findings : iterable of (Claim, Finding)
        Rows, each with what its check found just now.
    pages : mapping of int to str
        File name of the page of a chapter; a chapter without one is not linked.
    """
    lines = ["| claim | what its check found |", "|:--|:--|"]
    for row, finding in findings:
        chapters = ", ".join(_chapter(number, pages) for number in row.chapters)
        lines.append(
            f"| **{row.id}** {_cell(row.claim)}<br>{chapters} "
            f"| {MARKS[finding.verdict]} **{finding.verdict}**<br>"
            f"{_cell(_sentence(finding.evidence))} |"
        )
    return "\n".join(lines)


def _chapter(number: int, pages: Mapping[int, str]) -> str:
    words = f"chapter {number}"
    return f"[{words}]({pages[number]})" if number in pages else words


def _sentence(words: str) -> str:
    """Begin with a capital and end with a full stop, as sentences on a page do.

    A name of the code begins as it is spelled.
    """
    if "_" not in words.partition(" ")[0]:
        words = words[:1].upper() + words[1:]
    return words if words.endswith(".") else f"{words}."


def _cell(words: str) -> str:
    """Keep a sentence from ending its table cell or opening other Markdown."""
    for character in "\\|*_$<`[":
        words = words.replace(character, f"\\{character}")
    return words
