"""Margins and shifts: what the script writes."""

import json

import numpy as np
from conftest import require

from flashlib.experiments.disturb import CHANGES, disturbances, prompts, told
from flashlib.measure import margins

require("safetensors")


def test_script_adds_texts_to_its_record(tmp_path):
    for count in (1, 2):
        margins.main(["--more", "1"], tmp_path)
        written = json.loads((tmp_path / "margins.json").read_text())
        rows = {row["change"]: row for row in written["changes"]}
        assert rows.keys() == CHANGES.keys() and written["texts"] == count
        for row in rows.values():
            assert row["steps"] == sum(len(told(x)) - 16 for x in prompts(count))
            assert row["steps_changed"] <= row["steps_within_reach"]
            assert (row["first"] is None) == (row["texts_parted"] == 0)
        assert rows["matrix to flash"]["largest_shift"] < 1e-3


def test_a_replaced_word_is_reported(monkeypatch):
    text = prompts(1)[0]
    found = disturbances("matrix to flash", [text])[0]
    flipped = found._replace(changed=np.arange(len(found.changed)) == 3)
    monkeypatch.setattr(margins, "disturbances", lambda *_: [flipped])
    first = margins.parting("matrix to flash", [text])
    assert first["step"] == 3 and len(first["so_far"].split()) >= 2
    assert first["margin"] == found.margins[3]
    assert all(0 < p <= 1 for p in first["before_chances"] + first["after_chances"])
