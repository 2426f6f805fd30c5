"""Find numbers typed by hand where a cell computes them, and slips of style.

    .venv/bin/python tools/check_prose.py

A value glued in a notebook must reach the prose through its glue role, never through
the keyboard. Where a sentence means another thing that happens to have the same
number, or quotes a source, a comment in that cell says so: `<!-- typed: 512 -->`.
A comment that excuses nothing is reported too.
"""

import json
import pathlib
import re
import sys
from typing import NamedTuple

from prose import prose_of

ROOT = pathlib.Path(__file__).resolve().parent.parent
NUMBER = re.compile(r"(?<![\w.,^_{-])(\d{1,3}(?:,\d{3})+|\d+)(\.\d+)?(e[+-]?\d+)?")
FORMULA = re.compile(r"\$[^$]*\$")
TYPED = re.compile(r"<!--\s*typed:(.*?)-->", re.S)
SCALES = {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
SCALES |= {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "%": 1e-2, "m": 1e-3, "µ": 1e-6}
UNIT = re.compile(r"[\s~\\,]{0,3}(?:(Ki|Mi|Gi|k|M|G|T)(?:B|F)|(m|µ)s\b|\\?(%))")
# smaller whole numbers are counts that a sentence may spell
SMALLEST = 100
STYLE = {
    "exclamation mark": re.compile(r"[A-Za-z)*]!(?=[\s)*\"']|$)"),
    "unfinished": re.compile(r"\b(?:TO" r"DO|FIX" r"ME|lorem ipsum|TBD)\b"),
    "British spelling": re.compile(
        r"\b(?:\w*[cl]our(?:s|ed|ing)?|behaviour\w*|centre[ds]?|neighbour\w*"
        r"|normalis\w*|optimis\w*|vectoris\w*|materialis\w*|analys(?:e|ed|ing))\b"
    ),
    "hype": re.compile(
        r"\b(?:blazing\w*|revolutionary|game.chang\w+|amazing\w*|incredibl\w+)\b", re.I
    ),
}
NOT_BRITISH = re.compile(r"\b(?:four|hour|pour|tour|your|our|contour)\w*\b")


class Token(NamedTuple):
    """A number as it stands in a sentence."""

    text: str
    value: float
    decimals: int
    digits: int
    scale: float


def tokens_of(text):
    """Yield the numbers of a text that are worth a look."""
    for match in NUMBER.finditer(text):
        whole, fraction, exponent = match.groups(default="")
        value = float(whole.replace(",", "") + fraction + exponent)
        digits = len((whole + fraction).replace(",", "").replace(".", "").lstrip("0"))
        if digits < 2 or (not fraction and not exponent and value < SMALLEST):
            continue
        unit = UNIT.match(text, match.end())
        scale = SCALES[next(filter(None, unit.groups()))] if unit else 1.0
        yield Token(match[0], value, max(len(fraction) - 1, 0), digits, scale)


def is_same(token, value):
    """Tell whether a typed number says a computed one, rounded or in another unit."""
    if token.value == value:
        return True
    if token.digits < 3 or not (token.decimals or token.scale != 1.0):
        return False
    candidates = {value, value / token.scale}
    return any(round(c, token.decimals) == token.value for c in candidates)


def glued_in(executed):
    """Return {name: [values]} of what an executed notebook glued."""
    glued = {}
    for cell in executed["cells"]:
        for output in cell.get("outputs", []):
            scrap = output.get("metadata", {}).get("scrapbook", {})
            if "name" in scrap:
                # what is glued without being shown has a prefix before its type
                key = f"{scrap.get('mime_prefix', '')}text/plain"
                text = "".join(output["data"].get(key, ""))
                glued[scrap["name"]] = [
                    float((m[1] + (m[2] or "") + (m[3] or "")).replace(",", ""))
                    for m in NUMBER.finditer(text)
                ]
    return glued


def typed_numbers(cell, glued):
    """Yield ``(number, glue name)`` for what a Markdown cell says and a cell glued."""
    for token in tokens_of(prose_of("".join(cell["source"]))):
        names = [n for n, vs in glued.items() if any(is_same(token, v) for v in vs)]
        if names:
            yield token.text, names[0]


def faults_of_numbers(cell, glued):
    """Yield the numbers that should be glued, and the excuses that excuse nothing."""
    source = "".join(cell["source"])
    excused = [n for m in TYPED.finditer(source) for n in m[1].split()]
    found = dict(typed_numbers(cell, glued))
    for number, name in found.items():
        if number not in excused:
            yield f"{number} is typed; glue {name!r} computes it"
    for number in excused:
        if number not in found:
            yield f"'typed: {number}' excuses nothing"


def faults_of_notebook(path, executed_path):
    """Yield the faults of one notebook's prose."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    executed = json.loads(executed_path.read_text(encoding="utf-8"))
    glued = glued_in(executed)
    for i, cell in enumerate(cells):
        if cell["cell_type"] != "markdown":
            continue
        faults = [*faults_of_numbers(cell, glued)]
        faults += faults_of_style("".join(cell["source"]))
        yield from (f"{path.name} cell {i}: {fault}" for fault in faults)


def faults_of_style(markdown):
    """Yield what the house style does not allow in a piece of Markdown."""
    text = FORMULA.sub(" ", NOT_BRITISH.sub(" ", prose_of(markdown)))
    for rule, pattern in STYLE.items():
        for match in pattern.finditer(text):
            near = " ".join(text[max(match.start() - 20, 0) : match.end() + 8].split())
            yield f"{rule}: {near!r}"


def main(root=ROOT):
    """Check all prose of the project; stop with the list of faults."""
    faults = []
    for path in sorted((root / "notebooks").glob("*.ipynb")):
        executed = root / ".executed" / path.name
        if not executed.exists():
            sys.exit(f"prose: {path.name} has no outputs; run tools/execute.py first")
        faults += faults_of_notebook(path, executed)
    for path in [*sorted((root / "book").glob("*.md")), *sorted(root.glob("*.md"))]:
        for fault in faults_of_style(path.read_text(encoding="utf-8")):
            faults.append(f"{path.relative_to(root)}: {fault}")
    if faults:
        print(*faults, sep="\n")
        sys.exit(f"prose: {len(faults)} faults")
    print("prose: no number typed that a cell computes, no slip of style")


if __name__ == "__main__":
    main()
