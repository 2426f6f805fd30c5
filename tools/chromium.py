"""Open the built pages in the system's Chromium, over a local server or from disk."""

import contextlib
import functools
import http.server
import pathlib
import shutil
import threading

import yaml
from playwright.sync_api import sync_playwright

ROOT = pathlib.Path(__file__).resolve().parent.parent
HTML = ROOT / "_build" / "html"
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update"),
    "--disable-sync",
]
WIDTHS = {"wide": 1280, "narrow": 390}
THEMES = ("light", "dark")
# resolves when the formulas are set and every widget stands on the page
SETTLED = """async () => {
  if (window.MathJax?.startup) await window.MathJax.startup.promise;
  const wanted = document.querySelectorAll('script[type$="widget-view+json"]').length;
  for (let i = 0; i < 200; i++) {
    if (document.querySelectorAll(".widget-subarea").length >= wanted) break;
    await new Promise((done) => setTimeout(done, 50));
  }
  await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 50)));
}"""


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    """Serve files without a line of log for each."""

    def log_message(self, *args):
        pass


@contextlib.contextmanager
def serve(folder=HTML):
    """Serve a folder on a free local port and give its address."""
    handler = functools.partial(QuietHandler, directory=folder)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@contextlib.contextmanager
def launch():
    """Start a browser with a fresh profile and give it."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        raise FileNotFoundError(f"no browser found; expected one of {NAMES}")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path, headless=True, args=FLAGS
        )
        try:
            yield browser
        finally:
            browser.close()


def page_names():
    """Return the pages of the table of contents, in its order."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    return [toc["root"], *(c["file"] for p in toc["parts"] for c in p["chapters"])]


def show(page, address, width, theme):
    """Load a page at a width as a reader with that color preference sees it."""
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=theme, reduced_motion="reduce")
    page.goto(address, wait_until="load")
    page.evaluate(SETTLED)


def switch(page, theme):
    """Change the color theme of a page that is open."""
    page.emulate_media(color_scheme=theme, reduced_motion="reduce")
    page.evaluate("theme => { document.documentElement.dataset.theme = theme }", theme)
