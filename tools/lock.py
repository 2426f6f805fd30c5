"""Resolve every requirement for each Python and write constraints.txt.

    .venv/bin/python tools/lock.py python3.11 python3.12 python3.13

Nothing is installed: pip only reports what it would install. A package that has
the same version everywhere is one line; else one line for each Python.
"""

import json
import pathlib
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
# torch pins these to itself, and a CPU build has none of them
GPU_LIBRARIES = ("nvidia-", "cuda-", "triton")
HEADER = """\
# The exact versions that `make` installs. Written by tools/lock.py; do not edit.
"""


def requirements():
    """Return every requirement of requirements.txt and pyproject.toml."""
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    wanted = [line for line in lines if line and not line.startswith("#")]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted += project["dependencies"]
    for extra in project["optional-dependencies"].values():
        wanted += extra
    return wanted


def resolve(python):
    """Return ``(minor version, {package: version})`` as pip resolves for `python`."""
    command = [sys.executable, "-m", "pip", "--python", python, "install", "-qqq"]
    command += ["--dry-run", "--ignore-installed", "--only-binary=:all:"]
    command += ["--report", "-", *requirements()]
    report = json.loads(subprocess.run(command, check=True, stdout=-1).stdout)
    minor = ".".join(report["environment"]["python_full_version"].split(".")[:2])
    found = {}
    for item in report["install"]:
        name = item["metadata"]["name"].lower().replace("_", "-").replace(".", "-")
        if not name.startswith(GPU_LIBRARIES):
            found[name] = item["metadata"]["version"].split("+")[0]
    return minor, found


def merge(resolved):
    """Yield the lines of the constraints file."""
    for name in sorted(set().union(*resolved.values())):
        versions = {minor: found.get(name) for minor, found in resolved.items()}
        if len(set(versions.values())) == 1:
            yield f"{name}=={versions.popitem()[1]}"
            continue
        for minor, version in versions.items():
            if version:
                yield f'{name}=={version} ; python_version == "{minor}"'


def main(pythons):
    resolved = dict(resolve(python) for python in pythons)
    text = HEADER + "\n".join(merge(resolved)) + "\n"
    (ROOT / "constraints.txt").write_text(text)
    print(f"constraints.txt: {len(text.splitlines()) - 1} lines for {list(resolved)}")


if __name__ == "__main__":
    main(sys.argv[1:] or sys.exit(__doc__))
