"""The page of the package names every module, and the tool says where one is new."""

import re

import pytest
import write_api
from project import ROOT


def modules_of_the_tree():
    paths = (p.relative_to(ROOT).with_suffix("") for p in ROOT.glob("flashlib/**/*.py"))
    return {".".join(path.parts).removesuffix(".__init__") for path in paths}


def test_page_names_every_module_once():
    page = (ROOT / "book" / "api.md").read_text(encoding="utf-8")
    named = re.findall(r"^\.\. automodule:: (\S+)$", page, re.MULTILINE)
    assert len(set(named)) == len(named)
    assert set(named) == modules_of_the_tree(), "run tools/write_api.py"


def test_every_module_has_a_section():
    text, homeless = write_api.page()
    assert homeless == []
    assert set(re.findall(r"^\.\. automodule:: (\S+)$", text, re.M)) == (
        modules_of_the_tree()
    )


def test_module_without_a_section_is_named(monkeypatch):
    left = [s for s in write_api.SECTIONS if s[0] != "Caches"]
    monkeypatch.setattr(write_api, "SECTIONS", left)
    assert "flashlib.cache.paged" in write_api.main(["--check"])


def test_check_tells_a_page_that_is_behind(monkeypatch, tmp_path):
    monkeypatch.setattr(write_api, "PAGE", tmp_path / "api.md")
    assert "is not what the tree says" in write_api.main(["--check"])
    assert write_api.main([]) == 0
    assert write_api.main(["--check"]) == 0


@pytest.mark.parametrize("name", ["flash_attention", "FlashError", "merge_states"])
def test_what_flashlib_exports_stands_at_the_top(name):
    top = write_api.page()[0].partition("## What is computed")[0]
    assert re.search(rf"^\.\. auto\w+:: flashlib\.{name}$", top, re.MULTILINE)
