"""What the README shows is what the package does, and its list of chapters is whole."""

import doctest
import json
import re

import draw_readme
import pytest
import yaml
from project import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")


def chapters():
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    files = [chapter["file"] for part in toc["parts"] for chapter in part["chapters"]]
    return [name for name in files if re.match(r"notebooks/\d\d_", name)]


def test_examples_print_what_stands_under_them():
    blocks = re.findall(r"^```python\n(.*?)^```", README, re.M | re.S)
    parser = doctest.DocTestParser()
    examples = parser.get_doctest("\n".join(blocks), {}, "README", None, 0)
    assert len(examples.examples) > len(blocks) > 1
    assert doctest.DocTestRunner().run(examples).failed == 0


@pytest.mark.parametrize("name", chapters())
def test_chapter_is_listed_with_its_title(name):
    notebook = json.loads((ROOT / f"{name}.ipynb").read_text(encoding="utf-8"))
    title = "".join(notebook["cells"][0]["source"]).splitlines()[0].removeprefix("# ")
    number = int(re.search(r"/(\d\d)_", name)[1])
    assert f"[{number} {title}]({name}.ipynb)" in README


def test_links_lead_somewhere():
    links = re.findall(r"\]\(([^)#]+)\)", README)
    assert links and all((ROOT / link).exists() for link in links)


def without_rounding(svg):
    """Leave out how many units float32 is off: that depends on the machine's exp."""
    return re.sub(r"[\d.]+ (?=u\b|units)", "", svg)


def test_picture_is_what_the_package_draws():
    ((words, path),) = re.findall(r"!\[([^]]+)\]\(([^)]+)\)", README)
    assert len(words.split()) > 20 and ROOT / path == draw_readme.PICTURE
    kept = draw_readme.PICTURE.read_text(encoding="utf-8")
    drawn = draw_readme.draw()
    assert without_rounding(kept) == without_rounding(drawn), "run tools/draw_readme.py"
    assert "var(" not in kept and "currentColor" not in kept
