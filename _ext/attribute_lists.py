"""Give each attribute of a list, ``low, high : float``, an entry of its own.

Napoleon splits such lists under *Parameters* and leaves them whole under *Attributes*,
where Sphinx then takes all names but the last for a type.
"""

import re

LIST = re.compile(r"(\s*)(\w+(?:, \w+)+) : (.+)")


def split_lists(lines):
    """Return a docstring with every list of attributes as one entry for each name."""
    out, within, place = [], False, 0
    while place < len(lines):
        line, below = lines[place], lines[place + 1 : place + 2]
        if below and re.fullmatch(r"\s*-{3,}", below[0]):
            within = line.strip() == "Attributes"
        found = LIST.fullmatch(line) if within else None
        place += 1
        if not found:
            out.append(line)
            continue
        indent, names, kind = found.groups()
        words = []
        while place < len(lines) and lines[place].startswith(indent + " "):
            words.append(lines[place])
            place += 1
        for name in names.split(", "):
            out += [f"{indent}{name} : {kind}", *words]
    return out


def _on_docstring(app, what, name, entry, options, lines):
    lines[:] = split_lists(lines)


def setup(app):
    app.connect("autodoc-process-docstring", _on_docstring, priority=100)  # first
    return {"parallel_read_safe": True, "parallel_write_safe": True}
