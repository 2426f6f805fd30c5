"""Check the built pages without a network or a browser.

    .venv/bin/python tools/check_html.py _build/html

Every link and anchor must exist, nothing may load from outside, every picture needs
a text, every page a title, a language and a description, and no id may occur twice.
"""

import collections
import pathlib
import sys
import urllib.parse
from html.parser import HTMLParser

LOADING_TAGS = {
    *("script", "img", "link", "iframe", "source"),
    *("object", "video", "audio", "embed"),
}
# pages that Sphinx makes by itself, without a source that could describe them
GENERATED = ("genindex", "search", "py-modindex", "index", "_modules/")


class Page(HTMLParser):
    """What one page defines, refers to and loads."""

    def __init__(self, path):
        super().__init__()
        self.ids = collections.Counter()
        self.links, self.loads, self.faults = [], [], []
        self.described = False
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if given.get("id"):
            self.ids[given["id"]] += 1
        if tag == "a":
            self._see_link(given)
        if tag in LOADING_TAGS:
            self._see_load(tag, given)
        if tag == "img" and not given.get("alt"):
            self.faults.append(f"img without alt: {(given.get('src') or '')[:60]}")
        if tag == "svg" and given.get("role") == "img" and not given.get("aria-label"):
            self.faults.append("svg without aria-label")
        if tag == "html" and not given.get("lang"):
            self.faults.append("html without lang")
        if tag == "meta" and given.get("name") == "description":
            self.described = bool(given.get("content"))

    def _see_link(self, given):
        if given.get("href"):
            self.links.append(given["href"])
        if given.get("name"):
            self.ids[given["name"]] += 1

    def _see_load(self, tag, given):
        if tag == "link" and given.get("rel") in ("canonical", "alternate"):
            return
        url = given.get("src") or given.get("data")
        if tag == "link":
            url = given.get("href")
        if url:
            self.loads.append(url)


def faults_of_url(url, is_load, path, pages):
    """Yield what is wrong with one address on the page at `path`."""
    part = urllib.parse.urlsplit(url)
    if part.scheme in ("data", "mailto", "javascript", "blob"):
        return
    if part.scheme or part.netloc:
        if is_load:
            yield f"loads from outside: {url}"
        return
    target = path
    if part.path:
        target = (path.parent / urllib.parse.unquote(part.path)).resolve()
    if target.is_dir():
        target /= "index.html"
    anchor = urllib.parse.unquote(part.fragment)
    if not target.is_file():
        yield f"no such file: {url}"
    elif anchor not in ("", "top") and target in pages:
        if anchor not in pages[target].ids:
            yield f"no such anchor: {url}"


def faults_of_page(name, path, page, pages):
    yield from page.faults
    yield from (f"id twice: {i}" for i, count in page.ids.items() if count > 1)
    if not page.described and not name.startswith(GENERATED):
        yield "no meta description"
    for url in page.links:
        yield from faults_of_url(url, False, path, pages)
    for url in page.loads:
        yield from faults_of_url(url, True, path, pages)


def check(root):
    """Return the faults of all pages under `root`, each with its page's name."""
    root = pathlib.Path(root).resolve()
    files = [f for f in root.rglob("*.html") if "_static" not in f.parts]
    pages = {path: Page(path) for path in sorted(files)}
    faults = [] if pages else [f"no page under {root}"]
    for path, page in pages.items():
        name = path.relative_to(root).as_posix()
        faults += [f"{name}: {f}" for f in faults_of_page(name, path, page, pages)]
    links = sum(len(page.links) + len(page.loads) for page in pages.values())
    print(f"pages: {len(pages)} checked, {links} links, {len(faults)} faults")
    return faults


if __name__ == "__main__":
    found = check(sys.argv[1])
    print(*found, sep="\n")
    sys.exit(bool(found))
