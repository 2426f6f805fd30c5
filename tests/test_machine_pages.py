"""The pages about the machine say what the package says."""

import json
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest
from project import ROOT

from flashlib.machine import DIFFERENCES, NC_V3, isa_reference, timeline
from flashlib.machine.timeline import ENGINES
from flashlib.programs import decode_tile

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


@pytest.mark.parametrize("penalty, below, above", [(256, 48, 64), (0, 16, 24)])
def test_the_crossing_moves_with_the_penalty_for_short_runs(penalty, below, above):
    """The page names these columns as what hangs on our model of DMA."""
    assert f"between {below} and {above}" in PAGE
    spec, loads_longer = replace(NC_V3, dma_half_run_bytes=penalty), {}
    for columns in (below, above):
        rng = np.random.default_rng(0)
        shapes = (1, columns, 128), (2048, 1, 128), (2048, 1, 128)
        q, k, v = (rng.standard_normal(s).astype(ml_dtypes.bfloat16) for s in shapes)
        line = timeline(decode_tile(q, k, v, spec=spec).trace)
        loads = line.busy("k_load", "v_load")["dma"]
        loads_longer[columns] = loads > line.busy()["vector"]
    assert loads_longer == {below: True, above: False}
