"""The four paths, what is counted of them, and how a gain is shared out."""

import json

import numpy as np
import pytest

from flashlib.measure import attribution, record, verdict
from flashlib.measure.attribution import PATHS, count, path_of
from flashlib.measure.break_even import break_even, traffic_share, weigh
from flashlib.measure.fit import fit_times, share_out
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


@pytest.mark.parametrize(("a", "b"), [(3.0, 0.01), (0.0, 2.0), (5.0, 0.0)])
def test_a_fit_finds_what_it_was_made_of(a, b):
    fit = fit_times({n: a * n + b * n * n for n in (64, 500, 1024, 4096)})
    assert np.allclose(fit, (a, b), atol=1e-9)


def test_shares_add_up_and_do_not_depend_on_the_order():
    gain, matrix, bound = share_out(10.0, 9.0, 5.0, 4.8)
    assert gain == 10 / 4.8 and np.isclose(matrix + bound, 1)
    assert np.isclose(share_out(10.0, 5.0, 9.0, 4.8).matrix, bound)
    assert share_out(8.0, 10.0, 4.0, 5.0).matrix < 0


@pytest.mark.parametrize("balance", [0, 3, 21.5, 400])
def test_the_verdict_turns_at_the_break_even(balance):
    edge = break_even(balance)
    assert weigh(1.001 * edge, balance).flash_wins
    assert not weigh(0.999 * edge, balance).flash_wins
    with pytest.raises(ValueError, match="balance has -1"):
        traffic_share(-1)


def test_both_measurements_write_what_the_chapters_read(tmp_path, monkeypatch):
    for function in (record.read, record.write):
        monkeypatch.setattr(function, "__defaults__", (tmp_path,))
    attribution.main(ONE)
    content = record.read("attribution")
    assert set(content["times"]["1"]) == set(PATHS) == {r.name for r in content["rows"]}
    verdict.main(ONE)
    names = {row.name for row in record.read("verdict")["rows"]}
    assert {"blas", "scalar", "tiles", "blocked"} <= names
    assert json.loads((tmp_path / "verdict.json").read_text())["peer"] == "blas"
