"""Number a chapter as its file is numbered, whether or not all before it are there.

Sphinx counts the pages of the table of contents; with chapter 15 written before
chapter 9, its count would print a number that no other page means.
"""

import re

from docutils import nodes
from sphinx.environment.collectors.toctree import TocTreeCollector

NUMBERED = re.compile(r"(?:.*/)?(\d\d)_\w+$")


def chapter_of(docname):
    """Return the number in a document's name, or None."""
    found = NUMBERED.match(docname)
    return int(found[1]) if found else None


def renumber(env, docname):
    """Put the chapter's number first in every section number of a document."""
    chapter = chapter_of(docname)
    if chapter is None:
        return
    sections = env.toc_secnumbers[docname]
    for anchor, number in sections.items():
        if number:
            sections[anchor] = (chapter, *number[1:])
    holders = [*env.tocs[docname].findall(nodes.reference), env.titles[docname]]
    for node in holders:
        if node.get("secnumber"):
            node["secnumber"] = [chapter, *node["secnumber"][1:]]


def setup(app):
    app.setup_extension("sphinx_multitoc_numbering")  # it counts on across parts
    count = TocTreeCollector.assign_section_numbers

    def assign_section_numbers(self, env):
        before = env.toc_secnumbers
        count(self, env)
        for docname in env.toc_secnumbers:
            renumber(env, docname)
        return [d for d, n in env.toc_secnumbers.items() if n != before.get(d)]

    TocTreeCollector.assign_section_numbers = assign_section_numbers
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
