"""What a change of the arithmetic moves, held against the margin of each word."""

import numpy as np
from conftest import require

from flashlib.experiments.disturb import disturb

require("safetensors")


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
