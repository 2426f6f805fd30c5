"""Remove outputs and run marks from the notebooks, and keep everything else.

.venv/bin/python tools/strip.py            # all of notebooks/
.venv/bin/python tools/strip.py FILE ...
"""

import pathlib
import sys

import nbformat

ROOT = pathlib.Path(__file__).resolve().parent.parent


def strip(notebook):
    """Strip one notebook in place and return it."""
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    notebook.metadata.pop("widgets", None)
    notebook.metadata["language_info"] = {"name": "python"}
    return notebook


def stripped(text):
    """Return the text of a notebook file as it is committed."""
    return nbformat.writes(strip(nbformat.reads(text, 4)), indent=1) + "\n"


def main(files):
    for path in map(pathlib.Path, files or sorted(ROOT.glob("notebooks/*.ipynb"))):
        before = path.read_text(encoding="utf-8")
        after = stripped(before)
        if after != before:
            path.write_text(after, encoding="utf-8")
            print(f"stripped {path}")


if __name__ == "__main__":
    main(sys.argv[1:])
