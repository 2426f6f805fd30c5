"""What the tools write into a page is mended before it is stored."""

from types import SimpleNamespace

import pytest
from conftest import require

require("sphinx")
from offline_assets import (  # noqa: E402 - Sphinx may be missing
    mend_markup,
    use_vendored,
    write_index,
)


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


def test_vendored_files_are_used_only_when_they_are_complete(tmp_path):
    app = SimpleNamespace(srcdir=tmp_path)
    (tmp_path / ".vendor" / "site").mkdir(parents=True)
    config = SimpleNamespace(html_static_path=[])
    use_vendored(app, config)
    assert vars(config) == {"html_static_path": [str(tmp_path / "book/assets/site")]}
    (tmp_path / ".vendor" / "stamp").touch()  # written when all files are there
    use_vendored(app, config)
    assert config.html_static_path[-1] == str(tmp_path / ".vendor" / "site")
    assert config.mathjax_path.startswith("vendor/")
    assert not any("//" in address for address in config.nb_ipywidgets_js)


@pytest.mark.parametrize(
    "exception, builder, is_written",
    [(None, "html", True), (OSError(), "html", False), (None, "latex", False)],
)
def test_the_index_is_written_after_a_build_of_pages_that_went_well(
    tmp_path, exception, builder, is_written
):
    names = {"root_doc": "book/first", "html_title": "A & B", "html_favicon": "x/i.svg"}
    app = SimpleNamespace(
        outdir=tmp_path,
        builder=SimpleNamespace(name=builder),
        config=SimpleNamespace(**names),
    )
    write_index(app, exception)
    index = tmp_path / "index.html"
    assert index.exists() == is_written
    if is_written:
        text = index.read_text()
        assert "url=book/first.html" in text and "_static/i.svg" in text
        assert "A &amp; B" in text
