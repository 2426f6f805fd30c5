"""The directive `{chapter-map}`: which module belongs to which chapters.

The first docstring line of every module of flashlib ends with its chapters, as in
"(chapter 4)" or "(chapters 4, 5)". The table is made from those lines, so it cannot
say other than the package does.
"""

import ast
import pathlib
import re

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.util.docutils import SphinxDirective

CHAPTERS = re.compile(r"\s*\((?:chapters? ([\d, ]+)|book)\)\.?$")
BREAKABLE_DOT = ".\u200b"  # lets a long name wrap in a narrow column
QUOTED = re.compile(r"`{1,2}([^`]+)`{1,2}")
NUMBERED = re.compile(r"(\d\d)_\w+\.ipynb$")


def first_line(path):
    """Return the first line of a module's docstring, without importing it."""
    doc = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    return (doc or "").partition("\n")[0]


def module_name(path, root):
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def read_modules(root):
    """Yield ``(module, what it does, chapter numbers)`` for the package at `root`."""
    for path in sorted((root / "flashlib").rglob("*.py")):
        line = first_line(path)
        found = CHAPTERS.search(line)
        numbers = [int(n) for n in re.findall(r"\d+", found[1] or "")] if found else []
        yield module_name(path, root), CHAPTERS.sub("", line), numbers


def read_chapters(root):
    """Return {number: document name} of the numbered notebooks."""
    found = {}
    for path in sorted((root / "notebooks").glob("*.ipynb")):
        number = NUMBERED.search(path.name)
        if number:
            found[int(number[1])] = f"notebooks/{path.stem}"
    return found


def described_modules(root):
    """Return the modules that the API pages describe, which can be linked."""
    pages = [path.read_text(encoding="utf-8") for path in api_pages(root)]
    return set(re.findall(r"auto(?:module|summary):: *([\w.]+)", "\n".join(pages)))


def api_pages(root):
    """Return the pages that describe modules."""
    return sorted((root / "book").glob("api*.md"))


class ChapterMap(SphinxDirective):
    """Write the table; a chapter that is not written yet is a plain number."""

    def run(self):
        root = pathlib.Path(self.env.srcdir)
        for path in [*root.glob("flashlib/**/*.py"), *api_pages(root)]:
            self.env.note_dependency(str(path))
        chapters, described = read_chapters(root), described_modules(root)
        head = [[nodes.Text(t)] for t in ("Module", "What it holds", "Chapters")]
        rows = []
        for module, words, numbers in read_modules(root):
            name = nodes.literal(text=module.replace(".", BREAKABLE_DOT))
            if module in described:
                name = self._link("py", "mod", module, name)
            links = [self._chapter(number, chapters) for number in numbers]
            rows.append([[name], marked(words), join(links)])
        return [table(head, rows, widths=(30, 50, 20))]

    def _chapter(self, number, chapters):
        text = nodes.inline(text=str(number))
        if chapters.get(number) not in self.env.found_docs:
            return text
        return self._link("std", "doc", f"/{chapters[number]}", text)

    def _link(self, domain, kind, target, content):
        return pending_xref(
            "",
            content,
            refdomain=domain,
            reftype=kind,
            reftarget=target,
            refexplicit=True,
            refdoc=self.env.docname,
            refwarn=True,
        )


def marked(words):
    """Set what stands between backticks, single or double, as code."""
    parts = QUOTED.split(words)  # every second part is quoted
    return [
        nodes.literal(text=part) if place % 2 else nodes.Text(part)
        for place, part in enumerate(parts)
        if part
    ]


def join(links):
    """Put commas between links; modules without a chapter belong to the book."""
    if not links:
        return [nodes.Text("the book")]
    joined = [links[0]]
    for link in links[1:]:
        joined += [nodes.Text(", "), link]
    return joined


def table(head, rows, widths):
    """Build a table node from cells that are lists of inline nodes."""

    def row(cells):
        return nodes.row(
            "", *(nodes.entry("", nodes.paragraph("", "", *cell)) for cell in cells)
        )

    group = nodes.tgroup("", *(nodes.colspec(colwidth=w) for w in widths))
    group["cols"] = len(widths)
    group += nodes.thead("", row(head))
    group += nodes.tbody("", *(row(cells) for cells in rows))
    return nodes.table("", group)


def setup(app):
    app.add_directive("chapter-map", ChapterMap)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
