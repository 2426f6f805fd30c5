"""Every chapter has the same form, so that a reader finds the same thing again."""

import json
import re

import chapter_map
import pytest
import yaml
from project import ROOT

LABEL = re.compile(r"^\$\$ \((.*?)\)", re.M)
FOLD = re.compile(r'<details class="fl-predict"><summary>(.*?)</summary>')
MODULE = re.compile(r"\{py:mod\}`(flashlib[\w.]*)`")
ALSO = '<details class="fl-also"><summary>Also part of this chapter</summary>'
LAST = ["What would break it", "Exercises", "Three takeaways", "Sources", "Next"]


def chapters():
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    files = [chapter["file"] for part in toc["parts"] for chapter in part["chapters"]]
    return [name for name in files if re.match(r"notebooks/\d\d_", name)]


def prose(name):
    notebook = json.loads((ROOT / f"{name}.ipynb").read_text(encoding="utf-8"))
    cells = [c for c in notebook["cells"] if c["cell_type"] == "markdown"]
    return "\n\n".join("".join(cell["source"]) for cell in cells)


def section(text, heading):
    """Return what stands under a heading, up to the next of its level."""
    return text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


every_chapter = pytest.mark.parametrize("name", chapters())


@every_chapter
def test_head_names_three_verbs_needs_and_code(name):
    lines = [line for line in prose(name).splitlines() if line][:4]
    title, able, needs, code = lines
    assert title.startswith("# ")
    assert able.startswith("**You will be able to** *")
    assert len(re.findall(r"(?<!\*)\*[a-z ]+\*(?!\*)", able)) == 3
    assert needs.startswith("**Needs**: ")
    assert code.startswith("**Code of this chapter**: {py:mod}`flashlib.")


@every_chapter
def test_code_is_what_names_the_chapter_and_few_modules_come_first(name):
    number = int(re.search(r"/(\d\d)_", name)[1])
    head, _, rest = prose(name).partition("**Code of this chapter**: ")
    first, _, rest = rest.partition("\n\n")
    fold, _, _ = rest.partition("</details>")
    assert fold.startswith(ALSO) and not MODULE.search(head)
    assert 2 <= len(MODULE.findall(first)) <= 5
    listed = MODULE.findall(first + fold)
    assert len(set(listed)) == len(listed)
    modules = chapter_map.read_modules(ROOT)
    assert set(listed) == {m for m, _, numbers in modules if number in numbers}


@every_chapter
def test_a_prediction_comes_before_the_first_section(name):
    text = prose(name)
    opening = text[: text.index("\n## ")]
    assert len(FOLD.findall(opening)) == 1
    for question in FOLD.findall(text):
        assert re.match(r"Predict: .*\?", question), question
        # a summary is HTML: what MyST would turn into code or a number stays as typed
        assert not set("`{$*") & set(question), question


@every_chapter
def test_equations_are_labeled_alike(name):
    number = re.search(r"/(\d\d)_", name)[1]
    labels = LABEL.findall(prose(name))
    assert all(label.startswith(f"eq-ch{number}-") for label in labels), labels
    assert len(set(labels)) == len(labels)


@every_chapter
def test_last_sections_are_the_same(name):
    headings = re.findall(r"^## (.*)$", prose(name), re.M)
    assert headings[-len(LAST) :] == LAST


@every_chapter
def test_takeaways_are_three_and_numbered(name):
    lines = section(prose(name), "Three takeaways").splitlines()
    items = [line[:3] for line in lines if re.match(r"(\d+\.|[-*]) ", line)]
    assert items == ["1. ", "2. ", "3. "]


@every_chapter
def test_sources_cite_and_next_leads_on(name):
    assert "{cite:" in section(prose(name), "Sources")
    assert re.search(r"\]\([\w./]+\.(ipynb|md)\)", section(prose(name), "Next"))
