"""What every notebook looks like when it is committed."""

import json
import re

import nbformat
import pytest
import yaml
from project import ROOT
from strip import stripped

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
FIRST_CELL = "%matplotlib inline\nimport numpy as np\nimport flashlib"
LONGEST_CELL = 15
MACHINE_PATH = re.compile(
    rf"(/home/|/Users/|/root/|/tmp/|{re.escape(str(ROOT))}|[A-Z]:\\\\)\S*"
)

pytestmark = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)


def cells(path, kind):
    notebook = json.loads(path.read_text(encoding="utf-8"))
    return [c for c in notebook["cells"] if c["cell_type"] == kind]


def test_notebook_is_valid(path):
    nbformat.validate(json.loads(path.read_text(encoding="utf-8")))


def test_notebook_carries_no_outputs(path):
    for cell in cells(path, "code"):
        assert cell["outputs"] == []
        assert cell["execution_count"] is None
    metadata = json.loads(path.read_text(encoding="utf-8"))["metadata"]
    assert "widgets" not in metadata


def test_strip_would_change_no_byte(path):
    text = path.read_text(encoding="utf-8")
    # the texts are long, and a difference would be printed in full
    assert (stripped(text) == text) is True, "run tools/strip.py"


def test_cells_have_distinct_ids(path):
    ids = [c["id"] for kind in ("code", "markdown") for c in cells(path, kind)]
    assert len(set(ids)) == len(ids)


def test_first_code_cell_is_the_same_everywhere(path):
    assert "".join(cells(path, "code")[0]["source"]) == FIRST_CELL


def test_code_cells_are_short(path):
    for cell in cells(path, "code"):
        assert len("".join(cell["source"]).splitlines()) <= LONGEST_CELL, cell["id"]


def test_no_cell_names_a_place_on_one_machine(path):
    for kind in ("code", "markdown"):
        for cell in cells(path, kind):
            assert not MACHINE_PATH.search("".join(cell["source"])), cell["id"]


def test_notebook_describes_itself_and_has_one_title(path):
    metadata = json.loads(path.read_text(encoding="utf-8"))["metadata"]
    assert metadata["kernelspec"]["name"] == "python3"
    assert metadata["myst"]["html_meta"]["description"].strip()
    prose = "\n".join("".join(c["source"]) for c in cells(path, "markdown"))
    prose = re.sub(r"^```.*?^```", "", prose, flags=re.M | re.S)
    assert len(re.findall(r"^# ", prose, flags=re.M)) == 1


def test_notebook_is_in_the_table_of_contents(path):
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    files = [c["file"] for part in toc["parts"] for c in part["chapters"]]
    assert f"notebooks/{path.stem}" in [toc["root"], *files]
