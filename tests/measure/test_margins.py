"""Margins and shifts: what the script writes, and sums that imitate each other."""

import json

import numpy as np
import pytest
from conftest import require

from flashlib.measure import margins
from flashlib.measure.disturb import CHANGES, disturb, disturbances, prompts, told
from flashlib.measure.division import divide_first, divide_last, three_walks

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


def test_a_word_changes_only_within_reach():
    rng = np.random.default_rng(2)
    before = rng.integers(0, 5, (400, 4)) / 2
    found = disturb(before, before + rng.integers(-2, 3, before.shape) / 2)
    assert found.changed.any() and not found.changed.all()
    assert not (found.changed & (found.shifts < found.margins)).any()


def test_what_all_logits_share_is_no_shift():
    before = np.array([[1.0, 4.0, 2.0], [3.0, 3.0, 0.0]])
    found = disturb(before, before + np.array([[8.0], [-2.0]]))
    assert found.margins.tolist() == [2, 0] and not found.changed.any()
    assert found.shifts.tolist() == [0, 0]


def test_a_replaced_word_is_reported(monkeypatch):
    text = prompts(1)[0]
    found = disturbances("matrix to flash", [text])[0]
    flipped = found._replace(changed=np.arange(len(found.changed)) == 3)
    monkeypatch.setattr(margins, "disturbances", lambda *_: [flipped])
    first = margins.parting("matrix to flash", [text])
    assert first["step"] == 3 and len(first["so_far"].split()) >= 2
    assert first["margin"] == found.margins[3]
    assert all(0 < p <= 1 for p in first["before_chances"] + first["after_chances"])


@pytest.mark.parametrize("tile", [1, 4, 64, 1000])
@pytest.mark.parametrize("seq_k", [1, 6, 64, 65, 300])
def test_three_walks_return_the_old_bits(seq_k, tile):
    rng = np.random.default_rng(seq_k)
    s = np.float32(5 * rng.standard_normal(seq_k))
    v = np.float32(rng.standard_normal((seq_k, 16)))
    got = three_walks(lambda start, stop: s[start:stop], v, tile)
    assert np.array_equal(got, divide_first(s, v))
    assert np.allclose(got, divide_last(s, v), rtol=0, atol=1e-5)
