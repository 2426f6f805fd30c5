"""The pages of the package name every module, and the tool says where one is new."""

import re

import pytest
import write_api
from project import ROOT


def modules_of_the_tree():
    paths = (p.relative_to(ROOT).with_suffix("") for p in ROOT.glob("flashlib/**/*.py"))
    return {".".join(path.parts).removesuffix(".__init__") for path in paths}


def named(text):
    return re.findall(r"^\.\. automodule:: (\S+)$", text, re.MULTILINE)


def test_pages_name_every_module_once():
    pages = sorted((ROOT / "book").glob("api*.md"))
    found = [name for page in pages for name in named(page.read_text(encoding="utf-8"))]
    assert len(set(found)) == len(found)
    assert set(found) == modules_of_the_tree(), "run tools/write_api.py"


def test_every_module_has_a_section():
    texts, homeless = write_api.pages()
    assert homeless == []
    found = [name for text in texts.values() for name in named(text)]
    assert set(found) == modules_of_the_tree()


def test_module_without_a_section_is_named(monkeypatch):
    left = [page for page in write_api.PAGES if page[0] != "api_engine"]
    monkeypatch.setattr(write_api, "PAGES", left)
    assert "flashlib.cache.paged" in write_api.main(["--check"])


def test_check_tells_a_page_that_is_behind(monkeypatch, tmp_path):
    monkeypatch.setattr(write_api, "BOOK", tmp_path)
    assert "book/api.md is not what the tree says" in write_api.main(["--check"])
    assert write_api.main([]) == 0
    assert write_api.main(["--check"]) == 0
    (tmp_path / "api_machine.md").write_text("old", encoding="utf-8")
    assert "book/api_machine.md is not" in write_api.main(["--check"])


@pytest.mark.parametrize("name", ["flash_attention", "FlashError", "merge_states"])
def test_what_flashlib_exports_stands_at_the_top(name):
    top = write_api.pages()[0]["api"].partition("## What is computed")[0]
    assert re.search(rf"^\.\. auto\w+:: flashlib\.{name}$", top, re.MULTILINE)
