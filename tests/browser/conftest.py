"""One browser, one server, and a page that notes everything it should not do."""

import chromium
import pytest


@pytest.fixture(scope="session")
def base():
    with chromium.serve() as address:
        yield address


@pytest.fixture(scope="session")
def browser():
    with chromium.launch() as opened:
        yield opened


@pytest.fixture(scope="session")
def watched(browser):
    """Return the one page of the session; its `faults` are emptied by `page`."""
    page = browser.new_context().new_page()
    page.faults = []
    page.on("request", lambda r: note_outside(page, r.url))
    page.on("requestfailed", lambda r: note_failure(page, r))
    page.on("response", lambda r: note_status(page, r))
    page.on("pageerror", lambda e: page.faults.append(f"error: {e}"))
    page.on("console", lambda m: note_message(page, m))
    return page


@pytest.fixture
def page(watched):
    watched.goto("about:blank")
    watched.faults.clear()
    return watched


def note_outside(page, url):
    inside = ("http://127.0.0.1:", "file://", "data:", "blob:", "about:")
    if not url.startswith(inside):
        page.faults.append(f"outside: {url}")


def note_failure(page, request):
    if "ERR_ABORTED" not in request.failure:  # the page was left before it came
        page.faults.append(f"failed: {request.url}")


def note_status(page, response):
    if response.status >= 400:
        page.faults.append(f"{response.status}: {response.url}")


def note_message(page, message):
    if message.type == "error":
        page.faults.append(f"console: {message.text}")
