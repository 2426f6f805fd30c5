"""Fetch the pinned front-end files that the built pages serve, into .vendor/.

MathJax, require.js and the widget manager come from their own packages with
`npm pack`, which takes one tarball and none of its dependencies. Each tarball is
checked against the sha512 in vendor.json, and only the files named there are kept.
Nothing is done when .vendor/ is up to date.

Without npm the pages are still built, with the usual addresses of public servers.
"""

import base64
import hashlib
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
SPEC = ROOT / "tools" / "vendor.json"
DEST = ROOT / ".vendor"
STAMP = DEST / "stamp"
# source maps and the font formats that no current browser asks for
LEFT_OUT = (".map", "/embed.js", "/libembed-amd.js", ".eot", ".ttf", ".svg")
NO_NPM = """\
vendor: npm not found, so the pages will load MathJax and the widget manager from
vendor: public servers; install Node.js, remove .venv and run again to avoid that"""


def up_to_date():
    return STAMP.exists() and STAMP.read_text() == SPEC.read_text()


def find_npm():
    """Return npm's path: the system's, or that of the node extra in this venv."""
    beside = pathlib.Path(sys.executable).parent
    return shutil.which("npm") or shutil.which("npm", path=beside)


def pack(npm, package, folder):
    """Download the tarball of one package and return its path."""
    out = pathlib.Path(tempfile.mkdtemp(dir=folder))
    command = [npm, "pack", "--silent", "--pack-destination", str(out), package]
    if subprocess.run(command, stdout=subprocess.DEVNULL).returncode:
        sys.exit(f"vendor: npm could not fetch {package}; expected a network")
    return next(out.glob("*.tgz"))


def target_of(name, keep):
    """Return where a file of the tarball goes, or None when it is not wanted."""
    inside = name.partition("/")[2]  # every name starts with package/
    if inside.endswith(LEFT_OUT):
        return None
    for source, target in keep.items():
        if inside == source:
            return target
        if source.endswith("/") and inside.startswith(source):
            return target + inside[len(source) :]
    return None


def unpack(tarball, keep):
    with tarfile.open(tarball) as tar:
        for member in tar.getmembers():
            target = target_of(member.name, keep)
            if not target or not member.isfile():
                continue
            data = tar.extractfile(member).read()
            if target.endswith(".js"):  # the maps are left out, so drop their mention
                data = re.sub(rb"\n?//# sourceMappingURL=[^\n]*", b"", data)
            path = DEST / target
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)


def main():
    if up_to_date():
        return
    npm = find_npm()
    if not npm:
        print(NO_NPM)
        return
    shutil.rmtree(DEST, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        for package, wanted in json.loads(SPEC.read_text()).items():
            tarball = pack(npm, package, folder)
            digest = hashlib.sha512(tarball.read_bytes()).digest()
            found = base64.b64encode(digest).decode()
            if found != wanted["sha512"]:
                sys.exit(f"vendor: {package} has sha512 {found}, not the pinned one")
            unpack(tarball, wanted["keep"])
    STAMP.write_text(SPEC.read_text())
    sizes = [path.stat().st_size for path in DEST.rglob("*") if path.is_file()]
    print(f"vendor: {len(sizes)} files, {sum(sizes) / 1e6:.1f} MB in .vendor/")


if __name__ == "__main__":
    main()
