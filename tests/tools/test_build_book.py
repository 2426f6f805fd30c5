"""The pages are built when something changed, and a failed build leaves none behind."""

import build_book
import check_html
import execute
import fingerprint
import pytest
import seed_cache


class Book:
    """A book of one page, with a stand-in for what builds and checks it."""

    def __init__(self, root):
        self.page = root / "notebooks" / "01_a.ipynb"
        self.builds, self.clean, self.faults = 0, True, []
        self.stamped_meanwhile = []

    def run_sphinx(self, *options):
        assert {"-W", "--keep-going"} <= set(options)
        self.builds += 1
        self.stamped_meanwhile.append(build_book.STAMPS.exists())
        for folder in (build_book.HTML, build_book.DOCTREES / "notebooks"):
            folder.mkdir(parents=True, exist_ok=True)
        for name in ("01_a", "02_b", build_book.EXECUTION_TABLE):
            self.doctree(name).touch()
        return self.clean

    @staticmethod
    def doctree(name):
        return build_book.DOCTREES / "notebooks" / f"{name}.doctree"


@pytest.fixture
def book(tmp_path, monkeypatch):
    made, out = Book(tmp_path), tmp_path / "_build"
    made.page.parent.mkdir()
    made.page.write_text("first")
    monkeypatch.setattr(fingerprint, "ROOT", tmp_path)
    monkeypatch.setattr(execute, "EXECUTED", tmp_path / ".executed")
    monkeypatch.setattr(build_book, "BUILD", out)
    monkeypatch.setattr(build_book, "HTML", out / "html")
    monkeypatch.setattr(build_book, "DOCTREES", out / ".doctrees")
    monkeypatch.setattr(build_book, "STAMPS", out / "stamps.json")
    monkeypatch.setattr(build_book, "run_sphinx", made.run_sphinx)
    monkeypatch.setattr(check_html, "check", lambda root: made.faults)
    monkeypatch.setattr(seed_cache, "seed", lambda executed, folder: None)
    build_book.build([])
    return made


def test_nothing_is_built_twice(book):
    build_book.build([])
    assert book.builds == 1
    book.page.write_text("second")
    build_book.build([])
    build_book.build([])
    assert book.builds == 2


def test_what_ran_again_is_read_again_and_the_table_of_executions_too(
    book, monkeypatch
):
    there = []

    def look(*options):
        names = ("01_a", "02_b", build_book.EXECUTION_TABLE)
        there.extend(name for name in names if book.doctree(name).exists())
        return True

    monkeypatch.setattr(build_book, "run_sphinx", look)
    build_book.build(["01_a"])
    assert there == ["02_b"]


def test_a_change_of_the_frame_starts_afresh(book, monkeypatch):
    there = []
    monkeypatch.setattr(
        build_book,
        "run_sphinx",
        lambda *options: there.append(build_book.DOCTREES.exists()) or True,
    )
    (fingerprint.ROOT / "_toc.yml").write_text("changed")
    build_book.build([])
    assert there == [False]


@pytest.mark.parametrize("clean, faults", [(False, []), (True, ["a fault"])])
def test_after_a_failed_build_the_next_one_starts_afresh(book, clean, faults):
    book.page.write_text("second")
    book.clean, book.faults = clean, faults
    with pytest.raises(SystemExit, match="must be mended"):
        build_book.build([])
    # Sphinx would not repeat the warnings of pages that it has already read
    assert not build_book.HTML.exists() and not build_book.DOCTREES.exists()
    book.page.write_text("first")  # as when it was last built, whose pages are gone
    book.clean, book.faults = True, []
    build_book.build([])
    assert book.builds == 3


def test_while_it_builds_nothing_says_that_it_is_done(book):
    book.page.write_text("second")
    build_book.build([])
    assert book.stamped_meanwhile == [False, False]
