"""Run and build one chapter, for a quick look while it is being written.

    .venv/bin/python tools/build_chapter.py 04

References to other chapters stay unresolved here; `make book` resolves them.
"""

import sys

import build_book
import execute
import seed_cache

ROOT = execute.ROOT
OUT = ROOT / "_build" / "chapter"
TOC = OUT / "_toc.yml"


def find(number):
    """Return the one notebook whose name starts with `number`."""
    names = sorted(path.stem for path in execute.SOURCE.glob("*.ipynb"))
    found = [name for name in names if number and name.startswith(number)]
    if len(found) != 1:
        sys.exit(f"chapter: N has {number!r}; expected the start of one of {names}")
    return found[0]


def main(number):
    name = find(number)
    execute.main([name])
    OUT.mkdir(parents=True, exist_ok=True)
    TOC.write_text(f"format: jb-book\nroot: notebooks/{name}\n")
    cache = OUT / "_build" / ".jupyter_cache"
    seed_cache.seed([execute.EXECUTED / f"{name}.ipynb"], cache)
    place = ["--toc", str(TOC), "--path-output", str(OUT)]
    if not build_book.run_sphinx("-q", "--all", *place):
        sys.exit("chapter: the build failed")
    page = OUT / "_build" / "html" / "notebooks" / f"{name}.html"
    print(f"chapter: open {page.as_uri()}")


if __name__ == "__main__":
    main(sys.argv[1])
