"""The pages about the machine say what the package says."""

import json

import pytest
from project import ROOT

from flashlib.machine import DIFFERENCES, isa_reference
from flashlib.machine.timeline import ENGINES

PAGE = (ROOT / "book" / "differences.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("row", DIFFERENCES, ids=lambda row: row.topic)
def test_every_difference_stands_on_its_page(row):
    assert f"| {row.topic} | {row.real} | {row.here} |" in PAGE


def test_the_page_lists_no_difference_that_the_package_does_not_know():
    listed = [line for line in PAGE.splitlines() if line.startswith("| ")]
    assert len(listed) == len(DIFFERENCES) + 1


def test_the_reference_page_shows_every_engine_that_has_instructions():
    path = ROOT / "notebooks" / "isa_reference.ipynb"
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "code")
    first = {row.engines[0] for row in isa_reference()}
    assert first == set(ENGINES)
    for engine in first:
        assert f'entries("{engine}")' in code
