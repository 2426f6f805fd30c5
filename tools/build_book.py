"""Build the pages from the notebooks' one execution, and check them.

    .venv/bin/python tools/build_book.py

Nothing is done when nothing changed. A warning fails the build, and the next one
then starts afresh, since Sphinx would not repeat the warnings of unchanged pages.
"""

import json
import pathlib
import shutil
import subprocess
import sys

import check_html
import check_prose
import execute
import fingerprint

ROOT = fingerprint.ROOT
BUILD = ROOT / "_build"
HTML = BUILD / "html"
DOCTREES = BUILD / ".doctrees"
STAMPS = BUILD / "stamps.json"
# a change here may show on any page, and Sphinx would not notice all of them
FRAME = (
    *("_config.yml", "_toc.yml", "_ext", "book/assets", "book/references.bib"),
    *("flashlib", ".vendor/stamp", "constraints.txt", "tools/build_book.py"),
)
# shows the execution of all the others
EXECUTION_TABLE = "this_build"


def run_sphinx(*options):
    """Run the book's build from the project's root; return whether it was clean."""
    program = pathlib.Path(sys.executable).with_name("jupyter-book")
    command = [program, "build", ".", "-q", *options]
    return subprocess.run(command, cwd=ROOT).returncode == 0


def start_afresh():
    shutil.rmtree(HTML, ignore_errors=True)
    shutil.rmtree(DOCTREES, ignore_errors=True)


def forget_pages(names):
    """Let Sphinx read these notebooks again although their files are no newer."""
    for name in names:
        (DOCTREES / "notebooks" / f"{name}.doctree").unlink(missing_ok=True)


def build(executed):
    """Build what changed; stop with a message when a page has a fault."""
    stamps = {
        "frame": fingerprint.of_files(*FRAME),
        "pages": fingerprint.of_files("notebooks", "book"),
    }
    before = json.loads(STAMPS.read_text()) if STAMPS.exists() else {}
    if not executed and stamps == before:
        print("pages: nothing changed since they were built")
        return
    if stamps["frame"] != before.get("frame"):
        start_afresh()
    elif executed:
        forget_pages([*executed, EXECUTION_TABLE])
    import seed_cache  # takes a second, and most runs change nothing

    seed_cache.seed(execute.EXECUTED.glob("*.ipynb"), BUILD / ".jupyter_cache")
    STAMPS.unlink(missing_ok=True)
    print("pages: building")
    clean = run_sphinx("-W", "--keep-going", "-n")
    faults = check_html.check(HTML) if clean else []
    if faults or not clean:
        start_afresh()
        print(*faults, sep="\n")
        sys.exit("pages: the faults above must be mended")
    STAMPS.write_text(json.dumps(stamps))


def main():
    executed = execute.main()
    check_prose.main()
    build(executed)
    print(f"pages: open {(HTML / 'index.html').as_uri()}")


if __name__ == "__main__":
    main()
