"""Say in one short string what a set of files holds, so that work is not done twice."""

import hashlib
import json
import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
# what decides the outputs of a notebook, besides its own cells
CODE = ("flashlib", "book/measurements", "pyproject.toml", "constraints.txt")
SKIPPED = {"__pycache__", ".ipynb_checkpoints"}


def files_under(*names):
    """Yield every file at or under the given paths of the project, in order."""
    for name in names:
        path = ROOT / name
        found = [path] if path.is_file() else sorted(path.rglob("*"))
        yield from (f for f in found if f.is_file() and not SKIPPED & set(f.parts))


def of_files(*names):
    """Return the fingerprint of all files at or under the given paths."""
    digest = hashlib.sha256()
    for path in files_under(*names):
        digest.update(f"{path.relative_to(ROOT)}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def of_notebook(path, code):
    """Return the fingerprint of a notebook's outputs: its cells and all the code.

    Prose is left out: a corrected sentence does not run the notebook again.
    """
    notebook = json.loads(path.read_text(encoding="utf-8"))
    cells = [
        (cell["source"], cell["metadata"])
        for cell in notebook["cells"]
        if cell["cell_type"] == "code"
    ]
    kept = [code, cells, notebook["metadata"].get("kernelspec")]
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()
