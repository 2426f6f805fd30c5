"""The measurements: what they check, what they write; never how fast anything is."""

import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest
from model.sizes import TINY

from flashlib import available_backends, flash_attention
from flashlib.measure import (
    decode,
    first_call,
    growth,
    ladder,
    memory,
    paged,
    prefill,
    record,
    scaling,
    whole_model,
)
from flashlib.measure.timing import Timing, interleave
from flashlib.model import Qwen3Config
from flashlib.testing import make_qkv


def test_functions_take_turns_and_the_first_turn_is_not_counted():
    seen = []
    times = interleave({n: lambda n=n: seen.append(n) for n in "ab"}, rounds=3)
    assert seen == ["a", "a", "b", "b"] * 4  # the first of two wakes the threads
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


ONE = ["--lengths", "32", "--cores", "1", "--rounds", "1"]
# Ceilings that are quick to reach, and low.
PEAK, READ = ["--repeats", "1"], ["--bytes", "65536"]


def names(content):
    return {row.name for row in content["rows"]}


def test_a_measurement_is_a_table_and_a_file(tmp_path, capsys):
    prefill.main(ONE + PEAK, tmp_path)
    content = record.read("prefill", tmp_path)
    assert content["claim"] == "prefill" and content["peaks"]["1"] > 0
    assert "flashlib" in names(content) and content["machine"]["cores"] >= 1
    assert all(row.low <= row.milliseconds <= row.high for row in content["rows"])
    shown = capsys.readouterr().out
    assert "16/8/128 causal" in shown and str(tmp_path / "prefill.json") in shown


def test_a_table_says_in_words_what_a_row_was_measured_on(capsys):
    times = {"one": Timing(1.0, 0.5, 2.0, 3), "other": Timing(2.0, 2.0, 2.0, 3)}
    where = {"what": "causal", "seq": 511, "cores": 2}
    rows = record.rows_of(times, {"one": 5e8, "other": 1e9}, "one", **where)
    assert [(row.rate, row.ratio) for row in rows] == [(0.5, 1.0), (0.5, 0.5)]
    assert [row[4:7] for row in rows] == [(1e3, 500, 2e3), (2e3, 2e3, 2e3)]
    record.print_table(rows, "Gflop/s", "one", {"1": 1.0, "2": 2.0, "3": 9.0})
    header, case, line, _ = capsys.readouterr().out.splitlines()
    assert "of peak" in header and case == "causal, seq 511, 2 cores"
    assert line.startswith("one ") and line.endswith("25%")
    record.print_table([row._replace(name="one") for row in rows], "Gflop/s", "one")
    header, what, line, _ = capsys.readouterr().out.splitlines()
    assert "of peak" not in header and what == "causal"
    assert line.startswith("seq 511, 2 cores ")


@pytest.mark.parametrize(("cores", "ends"), [(2, "50%"), (1, "0.50")])
def test_who_used_all_cores_has_no_share_of_fewer(cores, ends, capsys):
    times = {"one": Timing(1.0, 0.5, 2.0, 3), "free": Timing(2.0, 2.0, 2.0, 3)}
    rows = record.rows_of(times, 2e9, "one", what="causal", cores=cores)
    peaks = {"1": 1.0, "2": 2.0}
    record.print_table(rows, "Gflop/s", "one", peaks, unlimited=("free",))
    assert capsys.readouterr().out.splitlines()[-1].endswith(ends)


def test_the_ladder_climbs_every_rung(tmp_path):
    ladder.main(ONE + PEAK + READ, tmp_path)
    content = record.read("ladder", tmp_path)
    assert names(content) >= set(ladder.RUNGS) >= {"pool", "tiles", "blocked"}
    assert all(row.rate > 0 for row in content["rows"])
    assert content["peaks"]["1"] > 0 and content["bandwidths"]["1"] > 0


def test_decode_and_pages_are_measured(tmp_path):
    decode.main(ONE + READ, tmp_path)
    assert names(record.read("decode", tmp_path)) >= {
        "flashlib",
        "flashlib, pages of 16",
    }
    paged.main(["--lengths", "256", "--cores", "1", "--rounds", "1"], tmp_path)
    ratios = {row.name: row.ratio for row in record.read("paged", tmp_path)["rows"]}
    assert ratios.pop(paged.WHOLE) == 1 and len(ratios) == len(paged.BLOCK_LENS)


def test_pages_hold_the_same_tokens():
    _, k, v = make_qkv(1, 64, n_heads=2, n_kv_heads=2)
    pages, table = decode.in_pages(k, v, 16)
    assert np.array_equal(pages[0][table[0]].reshape(k.shape), k)
    assert np.array_equal(pages[1][table[0]].reshape(v.shape), v)


def test_what_was_not_measured_says_how_to(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"python -m flashlib.measure.ladder"):
        record.read("ladder", tmp_path)


def test_time_and_memory_of_lengths_that_run_apart(tmp_path, monkeypatch):
    monkeypatch.setattr(scaling, "measure_apart", growth.measure_here)
    monkeypatch.setattr(memory, "measure_apart", growth.measure_here)
    scaling.main(["--lengths", "64", "128", *ONE[2:]], tmp_path)
    content = record.read("scaling", tmp_path)
    assert len(content["exponents"]["1"]) == 1 and content["gains"]["64"] == 1
    memory.main(["--lengths", "64"], tmp_path)
    assert record.read("memory", tmp_path)["memory"]["64"]["by_rights"] > 0


def test_growth_is_what_the_peak_rose_by_after_the_first_call(monkeypatch):
    peaks = iter([1000, 5500])
    monkeypatch.setattr(growth, "_peak_bytes", lambda: next(peaks))
    found = growth.measure_here(128, 1, 1)
    assert min(found[:3]) > 0 and found.peak == 4500
    assert found.rights == 128 * 128 * 4 * (2 * 16 + 4 * 8) + 128 * 16 * 4


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux")
def test_the_peak_is_what_was_touched_and_stays_when_it_is_given_back():
    code = """
import numpy as np
from flashlib.measure.growth import _peak_bytes
peaks = [_peak_bytes()]
for make in (np.empty, np.ones):
    x = make(2**26, np.uint8)
    peaks.append(_peak_bytes())
del x
print(*peaks, _peak_bytes())
"""
    run = [sys.executable, "-c", code]
    told = subprocess.run(run, capture_output=True, text=True, check=True).stdout
    start, empty, full, after = map(int, told.split())
    slack = 2**23
    assert 0 <= empty - start < slack
    assert 2**26 - slack < full - start < 2**26 + slack
    assert abs(after - full) < slack


def test_powers_are_those_of_the_times():
    assert scaling.exponents({10: 1.0, 20: 8.0}) == [3.0]


def test_the_peak_counts_its_work():
    from flashlib.kernels.peak import count_of_flops, run_peak

    results = np.zeros(1, np.float32)
    run_peak(results, 3)
    assert results[0] == 128
    assert count_of_flops(np.dtype(np.float32), 2) % (2 * 128 * 2) == 0


@pytest.mark.parametrize("code", [first_call.FIRST, first_call.EVERYTHING])
def test_code_of_the_first_call_runs(code):
    # kernels that other tests have left compiled will do
    assert first_call.seconds_of(code, numba.config.CACHE_DIR) > 0


def test_the_later_calls_find_what_the_first_has_left(tmp_path, monkeypatch):
    mark = "import os, pathlib; mark = pathlib.Path(os.environ['NUMBA_CACHE_DIR'], 'x')"
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "of somebody else"))
    monkeypatch.setattr(first_call, "EVERYTHING", f"{mark}; mark.touch(exist_ok=False)")
    monkeypatch.setattr(first_call, "FIRST", f"{mark}; assert mark.exists()")
    first_call.main([], tmp_path)
    rows = record.read("first_call", tmp_path)["rows"]
    assert [row.what for row in rows] == ["everything, cold", "first prefill, warm"]
    assert rows[0].low == rows[0].high > 0


def test_code_that_fails_is_not_timed(tmp_path):
    with pytest.raises(subprocess.CalledProcessError):
        first_call.seconds_of("raise SystemExit(3)", str(tmp_path))


def test_a_whole_model_is_timed_with_every_backend(tmp_path, monkeypatch):
    monkeypatch.setattr(Qwen3Config, "qwen3_0_6b", classmethod(lambda cls: TINY))
    whole_model.main(["--tokens", "9", "--layers", "1", "--rounds", "1"], tmp_path)
    rows = record.read("whole_model", tmp_path)["rows"]
    for what in (whole_model.FIRST, whole_model.NEXT):
        found = [row for row in rows if row.what == what]
        assert {row.name for row in found} == set(available_backends())
        assert all(row.rate > 0 and row.ratio for row in found)
