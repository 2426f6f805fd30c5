"""The measurements: what they check, what they write; never how fast anything is."""

import json

import numpy as np
import pytest

from flashlib import flash_attention
from flashlib.measure import decode, first_call, growth, ladder, peak, prefill, record
from flashlib.measure.timing import Timing, interleave
from flashlib.testing import make_qkv


def test_functions_take_turns_and_the_first_turn_is_not_counted():
    seen = []
    times = interleave({n: lambda n=n: seen.append(n) for n in "ab"}, rounds=3)
    assert seen == ["a", "b"] * 4
    for timing in times.values():
        assert isinstance(timing, Timing) and timing.rounds == 3
        assert timing.low <= timing.median <= timing.high


@pytest.mark.parametrize("causal", [True, False])
def test_a_wrong_result_is_not_timed(causal):
    tensors = make_qkv(40)
    out = flash_attention(*tensors, causal=causal).out
    assert prefill.check(out, tensors, causal) < 1e-5
    wrong = out.copy()
    wrong[-1] += 1e-4
    with pytest.raises(AssertionError, match="out is off by"):
        prefill.check(wrong, tensors, causal)


def test_a_measurement_is_a_table_and_a_file(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(record, "FOLDER", tmp_path)
    monkeypatch.setattr(record.write, "__defaults__", (tmp_path,))
    one = ["--lengths", "32", "--cores", "1", "--rounds", "1"]
    quick = dict.fromkeys(("repeats", "rounds"), 1)
    monkeypatch.setattr(peak.flops_per_second, "__kwdefaults__", quick)
    small = {"n_bytes": 2**16, "rounds": 1}
    monkeypatch.setattr(peak.read_bytes_per_second, "__kwdefaults__", small)
    for claim, main in (("prefill", prefill.main), ("ladder", ladder.main)):
        main(one)
        content = json.loads((tmp_path / f"{claim}.json").read_text())
        assert content["claim"] == claim and content["peaks"]["1"] > 0
        names = {row["name"] for row in content["rows"]}
        assert names >= ({"flashlib"} if claim == "prefill" else set(ladder.RUNGS))
        assert all(row["rate"] > 0 for row in content["rows"])
        assert content["machine"]["cores"] >= 1
    decode.main(one)
    content = json.loads((tmp_path / "decode.json").read_text())
    assert {"flashlib", "flashlib, pages of 16"} <= {
        row["name"] for row in content["rows"]
    }
    assert "flashlib" in capsys.readouterr().out


def test_growth_runs_here():
    *seconds, peak_bytes, rights = growth.measure_here(128, 1)
    assert min(seconds) > 0 and peak_bytes >= 0
    assert rights == 128 * 128 * 4 * (2 * 16 + 4 * 8) + 128 * 16 * 4


def test_the_peak_counts_its_work():
    from flashlib.kernels.peak import count_of_flops, run_peak

    results = np.zeros(1, np.float32)
    run_peak(np.ones(1024, np.float32), results, 3)
    assert results[0] == 128
    assert count_of_flops(np.dtype(np.float32), 2) % (2 * 128 * 2) == 0


def test_code_of_the_first_call_is_code():
    for code in (first_call.FIRST, first_call.EVERYTHING):
        compile(code, "<first call>", "exec")
