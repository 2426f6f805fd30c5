"""What the tools write into a page is mended before it is stored."""

from conftest import require

require("sphinx")
from offline_assets import mend_markup  # noqa: E402 - Sphinx may be missing


def mended(body):
    context = {"body": body}
    mend_markup(None, "page", "page.html", context, None)
    return context["body"]


def test_roles_that_readers_of_screens_do_not_know_are_dropped():
    entry = '<div class="citation" id="a" role="doc-biblioentry">A</div>'
    assert mended(entry) == '<div class="citation" id="a">A</div>'
    entries = '<div role="list" class="citation-list">A</div>'
    assert mended(entries) == '<div class="citation-list">A</div>'


def test_other_roles_stay():
    body = '<nav role="doc-toc"><ul role="list"><li>A</li></ul></nav>'
    assert mended(body) == body


def test_tables_can_have_the_focus():
    assert mended('<table class="table x">') == '<table tabindex="0" class="table x">'


def test_marks_are_plain():
    assert mended("<p>✅</p><p>❌</p>") == "<p>✓</p><p>✗</p>"


def test_a_formula_keeps_the_stop_behind_it():
    formula = '<span class="math notranslate nohighlight">\\(x\\)</span>'
    together = f'<span class="fl-together">{formula}.</span>'
    assert mended(f"<p>It is {formula}. Then {formula} x</p>") == (
        f"<p>It is {together} Then {formula} x</p>"
    )


def test_a_page_without_a_body_is_left_alone():
    context = {}
    mend_markup(None, "search", "page.html", context, None)
    assert context == {}
