"""The four paths, what is counted of them, and what both measurements write."""

import json

import numpy as np
import pytest

from flashlib.measure import attribution, record, verdict
from flashlib.measure.attribution import PATHS, count, path_of
from flashlib.testing import make_qkv, oracle

ONE = ["--lengths", "32", "--cores", "1", "--rounds", "1"]


@pytest.mark.parametrize("name", PATHS)
@pytest.mark.parametrize("n", [1, 2, 17, 63, 64, 65, 130])
def test_every_path_is_causal_attention(name, n):
    call = make_qkv(n, n_heads=4, n_kv_heads=2, head_dim=24, seed=n)
    out = path_of(PATHS[name], *call)()
    assert np.abs(out - oracle(*call, causal=True).out).max() < 4e-6


def test_a_second_run_starts_afresh():
    call = make_qkv(70, n_heads=2, seed=3)
    for path in PATHS.values():
        run = path_of(path, *call)
        assert np.array_equal(run().copy(), run())


def test_bounds_halve_the_pairs_and_strips_move_no_matrix():
    for n in (1, 64, 511):
        square, strip, bounded, both = (count(path, n) for path in PATHS.values())
        assert square.pairs == strip.pairs == n * n
        assert bounded.pairs == both.pairs == n * (n + 1) // 2
        assert strip.matrix_traffic == both.matrix_traffic == 0
        assert square.matrix_traffic == 4 * (5 * n * n + n * (n - 1) // 2)


def test_both_measurements_write_what_the_chapters_read(tmp_path):
    attribution.main(ONE, tmp_path)
    content = record.read("attribution", tmp_path)
    assert set(content["times"]["1"]) == set(PATHS) == {r.name for r in content["rows"]}
    verdict.main(ONE, tmp_path)
    names = {row.name for row in record.read("verdict", tmp_path)["rows"]}
    assert {"blas", "scalar", "tiles", "blocked"} <= names
    assert json.loads((tmp_path / "verdict.json").read_text())["peer"] == "blas"
