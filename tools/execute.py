"""Run the notebooks that changed, each once, in parallel, on copies in .executed/.

    .venv/bin/python tools/execute.py [NAME ...]

The run is the test (a cell that raises fails it) and its outputs are what the pages
show: the build takes them from the copies and runs nothing. A notebook is run again
when its code cells or the package changed.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import fingerprint

ROOT = fingerprint.ROOT
SOURCE = ROOT / "notebooks"
EXECUTED = ROOT / ".executed"
STAMPS = EXECUTED / "stamps.json"
REPORT = EXECUTED / "report.xml"
CELL_TIMEOUT = 300  # seconds
# Takes the longest. Begun first, it does not keep the others waiting at the end, and
# the fast kernel is compiled by one notebook meanwhile, not by two at once.
LONGEST = "13_the_coin_flip"


def read_stamps():
    return json.loads(STAMPS.read_text()) if STAMPS.exists() else {}


def find_stale(names):
    """Return {name: fingerprint} of the notebooks whose outputs are out of date."""
    code = fingerprint.of_files(*fingerprint.CODE)
    stamps = read_stamps()
    stale = {}
    for path in sorted(SOURCE.glob("*.ipynb")):
        key = fingerprint.of_notebook(path, code)
        done = stamps.get(path.stem) == key and (EXECUTED / path.name).exists()
        if not done and (not names or path.stem in names):
            stale[path.stem] = key
    return stale


def run(names):
    """Run copies of the named notebooks with nbmake; return those that passed."""
    for name in names:
        shutil.copy(SOURCE / f"{name}.ipynb", EXECUTED)
    names = sorted(names, key=lambda name: name != LONGEST)
    workers = min(len(names), os.cpu_count() or 1)
    command = [sys.executable, "-m", "pytest", "-q", "--no-header", "--nbmake"]
    command += ["--overwrite", f"--nbmake-timeout={CELL_TIMEOUT}"]
    command += ["--nbmake-kernel=python3", "-n", str(workers if workers > 1 else 0)]
    command += ["--maxschedchunk=1", f"--junitxml={REPORT}", "-p", "no:cacheprovider"]
    command += [f".executed/{name}.ipynb" for name in names]
    # a reader's own IPython start-up files must not reach the pages
    env = {**os.environ, "IPYTHONDIR": str(EXECUTED / "ipython")}
    # notebooks that run side by side share the cores already
    env.setdefault("OPENBLAS_NUM_THREADS", "1")
    # else Matplotlib's "building the font cache" may land in the first output
    subprocess.run([sys.executable, "-c", "import matplotlib.font_manager"], check=True)
    subprocess.run(command, cwd=ROOT, env=env)
    return set(names) - set(failed_in(REPORT))


def failed_in(report):
    """Return the names of the notebooks that a JUnit report counts as failed."""
    for case in ElementTree.parse(report).iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            yield pathlib.Path(case.get("name")).stem


def main(names=()):
    """Bring .executed/ up to date and return the names of what was run."""
    EXECUTED.mkdir(exist_ok=True)
    for path in EXECUTED.glob("*.ipynb"):
        if not (SOURCE / path.name).exists():
            path.unlink()
    stale = find_stale(names)
    if not stale:
        print("notebooks: nothing changed since they were run")
        return []
    print(f"notebooks: running {', '.join(stale)}")
    passed = run(list(stale))
    stamps = {**read_stamps(), **{name: stale[name] for name in passed}}
    STAMPS.write_text(json.dumps(stamps, indent=1, sort_keys=True))
    failed = [name for name in stale if name not in passed]
    if failed:
        sys.exit(
            f"notebooks: {', '.join(failed)} failed; the cell and its error stand "
            "above\nnotebooks: open it with `make notebooks`, mend it, and run again"
        )
    return list(stale)


if __name__ == "__main__":
    main(sys.argv[1:])
