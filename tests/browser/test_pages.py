"""Every page as a reader opens it: both themes, wide and narrow, and from disk."""

import chromium
import pytest

PAGES = chromium.page_names()
AXE = chromium.ROOT / ".vendor" / "test" / "axe.min.js"
# faults of the theme itself (pydata-sphinx-theme 0.17.1), not of the book
THEME_RULES = {"label-content-name-mismatch", "region"}
FROM_DISK = ["notebooks/00_two_minute_tour", "notebooks/04_online_softmax"]

WIDGETS = """() => [
  document.querySelectorAll('script[type$="widget-view+json"]').length,
  document.querySelectorAll(".widget-subarea").length]"""
RUN_AXE = """async (rules) => (await axe.run({
    resultTypes: ["violations"],
    ...(rules && {runOnly: {type: "rule", values: rules}}),
  })).violations.map(
  (v) => [v.id, v.nodes.map((n) => n.html.slice(0, 200)).slice(0, 3)])"""
TOO_WIDE = """() => {
  const root = document.documentElement;
  if (root.scrollWidth <= root.clientWidth) return [];
  const scrolls = (e) => e && e !== document.body &&
    (getComputedStyle(e).overflowX !== "visible" || scrolls(e.parentElement));
  return [...document.body.querySelectorAll("*")]
    .filter((e) => e.getBoundingClientRect().right > root.clientWidth + 1)
    .filter((e) => !scrolls(e.parentElement))
    .map((e) => e.outerHTML.slice(0, 120)).concat(["page is too wide"]).slice(0, 5);
}"""

# what is wider than its place, with the two widths
TOO_LONG = """(names) => [...document.querySelectorAll(names)]
  .filter((e) => e.checkVisibility() && e.scrollWidth > e.clientWidth + 1)
  .map((e) => [e.textContent.trim().slice(0, 60), e.scrollWidth, e.clientWidth])"""
# punctuation that has left its formula for the next line
STRAY = """() => [...document.querySelectorAll(".bd-article span.math")]
  .filter((e) => e.checkVisibility() && /^[.,;:!?)]/.test(e.nextSibling?.data ?? ""))
  .filter((e) => {
    const stop = document.createRange();
    stop.setStart(e.nextSibling, 0);
    stop.setEnd(e.nextSibling, 1);
    const end = e.getBoundingClientRect().right;
    return stop.getBoundingClientRect().left < end - 1;
  }).map((e) => e.parentElement.textContent.slice(0, 60))"""
CUT_WITHOUT_A_HINT = """() => [...document.querySelectorAll(".bd-article *")]
  .filter((e) => /auto|scroll/.test(getComputedStyle(e).overflowX))
  .filter((e) => e.checkVisibility() && e.scrollWidth > e.clientWidth + 1)
  .filter((e) => !e.classList.contains("fl-wide"))
  .map((e) => [e.tagName, e.className, e.textContent.trim().slice(0, 60)])"""


def assert_whole(page):
    """Assert that formulas and widgets stand and that nothing went wrong."""
    assert page.locator("mjx-merror").count() == 0
    wanted, found = page.evaluate(WIDGETS)
    assert found == wanted
    assert page.faults == []


def assert_accessible(page, rules=None):
    found = dict(page.evaluate(RUN_AXE, rules))
    assert {rule: found[rule] for rule in found.keys() - THEME_RULES} == {}


@pytest.mark.parametrize("kind", chromium.WIDTHS)
@pytest.mark.parametrize("name", PAGES)
def test_page_is_whole_in_both_themes(page, base, name, kind):
    first, second = chromium.THEMES if kind == "wide" else chromium.THEMES[::-1]
    chromium.show(page, f"{base}/{name}.html", chromium.WIDTHS[kind], first)
    assert page.evaluate("document.documentElement.dataset.theme") == first
    assert_whole(page)
    assert page.evaluate(TOO_WIDE) == []
    if kind == "wide":
        names = 'mjx-container[display="true"], .cell_output pre'
        assert page.evaluate(TOO_LONG, names) == []
    assert page.evaluate(CUT_WITHOUT_A_HINT) == []
    assert page.evaluate(STRAY) == []
    page.add_script_tag(path=AXE)
    assert_accessible(page)
    chromium.switch(page, second)
    assert page.evaluate(TOO_WIDE) == []
    assert_accessible(page, ["color-contrast"])  # all that a theme can change
    assert page.faults == []


def test_index_leads_to_the_first_page(page, base):
    page.goto(f"{base}/index.html")
    page.wait_for_url(f"**/{PAGES[0]}.html")
    page.evaluate(chromium.SETTLED)
    assert page.faults == []


@pytest.mark.parametrize("name", FROM_DISK)
def test_page_works_from_disk(page, name):
    chromium.show(page, (chromium.HTML / f"{name}.html").as_uri(), 1280, "light")
    assert_whole(page)
    assert page.evaluate(WIDGETS)[1] > 0


def test_formulas_are_set_from_disk(page):
    address = (chromium.HTML / "notebooks" / "04_online_softmax.html").as_uri()
    chromium.show(page, address, 1280, "light")
    assert page.locator("mjx-container").count() > 0


@pytest.mark.parametrize("place", ["server", "disk"])
def test_search_finds_a_word(page, base, place):
    start = base if place == "server" else chromium.HTML.as_uri()
    page.goto(f"{start}/search.html?q=softmax")
    page.locator("#search-results li").first.wait_for(timeout=10_000)
    assert page.faults == []


def test_reader_without_scripts_sees_the_pictures(browser, base):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{base}/{PAGES[0]}.html")
    assert page.locator("svg.fl-picture").count() > 0
    assert page.locator("svg.fl-picture").first.is_visible()
    context.close()
