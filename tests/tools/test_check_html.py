"""The page check finds each kind of fault and passes a sound page."""

import check_html
import pytest

HEAD = '<html lang="en"><head><meta name="description" content="A page."></head>'


def check(tmp_path, body, head=HEAD):
    (tmp_path / "other.html").write_text(f'{HEAD}<body><p id="there"></p></body>')
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty").mkdir()
    inside = f'{HEAD}<body><p id="inside"></p></body></html>'
    (tmp_path / "folder" / "index.html").write_text(inside)
    (tmp_path / "page.html").write_text(f"{head}<body>{body}</body></html>")
    return check_html.check(tmp_path)


@pytest.mark.parametrize(
    "body",
    [
        '<a href="other.html">x</a>',
        '<a href="other.html#there">x</a>',
        '<a href="https://example.org/">x</a>',
        '<img alt="A bar" src="data:image/png;base64,AAAA">',
        '<svg role="img" aria-label="A bar"></svg>',
        '<p id="here"></p><a href="#here">x</a>',
        '<a name="here"></a><a href="#here">x</a>',
        '<a href="%6Fther.html">x</a>',
        '<a href="other.html#%74here">x</a>',
        '<a href="folder/">x</a>',
        '<a href="folder">x</a>',
        '<a href="folder/#inside">x</a>',
        '<iframe src="other.html"></iframe>',
        '<object data="other.html"></object>',
        '<link rel="canonical" href="https://example.org/page.html">',
    ],
)
def test_sound_page_passes(tmp_path, body):
    assert check(tmp_path, body) == []


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ('<a href="gone.html">x</a>', "no such file: gone.html"),
        ('<a href="other.html#gone">x</a>', "no such anchor: other.html#gone"),
        ('<script src="https://example.org/x.js"></script>', "loads from outside"),
        ('<script src="http://example.org/x.js"></script>', "loads from outside"),
        ('<link rel="stylesheet" href="//example.org/x.css">', "loads from outside"),
        *(
            (f'<{tag} src="https://example.org/x" alt="x">', "loads from outside")
            for tag in ("iframe", "source", "video", "audio", "embed", "img")
        ),
        ('<object data="https://example.org/x"></object>', "loads from outside"),
        ('<object data="gone.svg"></object>', "no such file: gone.svg"),
        ('<iframe src="gone.html"></iframe>', "no such file: gone.html"),
        ('<source src="gone.mp4">', "no such file: gone.mp4"),
        ('<a href="empty/">x</a>', "no such file: empty/"),
        ('<a href="folder/#gone">x</a>', "no such anchor: folder/#gone"),
        ('<img src="data:image/png;base64,AAAA">', "img without alt"),
        ('<svg role="img"></svg>', "svg without aria-label"),
        ('<p id="a"></p><p id="a"></p>', "id twice: a"),
        ('<p id="a"></p><a name="a"></a>', "id twice: a"),
    ],
)
def test_fault_is_found(tmp_path, body, fault):
    (found,) = check(tmp_path, body)
    assert found.startswith(f"page.html: {fault}")


def test_page_must_say_its_language_and_describe_itself(tmp_path):
    found = check(tmp_path, "", head="<html><head></head>")
    assert found == ["page.html: html without lang", "page.html: no meta description"]


def test_no_page_is_a_fault(tmp_path):
    assert len(check_html.check(tmp_path)) == 1
