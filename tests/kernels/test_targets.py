"""The shapes of register tiles, for every processor and both types."""

import numpy as np
import pytest

from flashlib.kernels import targets
from flashlib.kernels.targets import TARGETS, host_target, register_tile, target_index

# Rows of a panel, lanes of a block in float32 and in float64.
TILES = {
    "plain": (4, 12, 6),
    "neon": (8, 12, 6),
    "avx2": (4, 24, 12),
    "avx512": (8, 48, 24),
}


@pytest.mark.parametrize("name", TILES)
def test_a_tile_is_half_as_wide_in_numbers_of_twice_the_bytes(monkeypatch, name):
    monkeypatch.setattr(targets, "this_target", lambda: target_index(name))
    rows, lanes, double_lanes = TILES[name]
    assert register_tile(np.dtype(np.float32)) == (rows, lanes)
    assert register_tile(np.dtype(np.float64)) == (rows, double_lanes)


def test_every_target_is_found_by_its_name():
    assert [target.name for target in TARGETS] == list(TILES)
    assert [target_index(name) for name in TILES] == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="not in list"):
        target_index("sse9")


def test_this_processor_is_asked_unless_features_are_given(monkeypatch):
    binding = targets.llvmlite.binding
    for features, name in (({"neon": True}, "neon"), ({"avx512f": True}, "avx512")):
        monkeypatch.setattr(binding, "get_host_cpu_features", lambda f=features: f)
        assert TARGETS[host_target()].name == name
        assert TARGETS[host_target({})].name == "plain"


def test_a_product_that_is_not_fused_is_only_on_the_plain_target():
    assert [target.name for target in TARGETS if not target.fused] == ["plain"]
