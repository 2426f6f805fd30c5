"""The measurements: what they check, what they write; never how fast anything is."""

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
    peak,
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


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Let measurements be quick, and write into a folder of their own."""
    for function in (record.read, record.write):
        monkeypatch.setattr(function, "__defaults__", (tmp_path,))
    quick = dict.fromkeys(("repeats", "rounds"), 1)
    monkeypatch.setattr(peak.flops_per_second, "__kwdefaults__", quick)
    small = {"n_bytes": 2**16, "rounds": 1}
    monkeypatch.setattr(peak.read_bytes_per_second, "__kwdefaults__", small)
    return tmp_path


def names(content):
    return {row.name for row in content["rows"]}


def test_a_measurement_is_a_table_and_a_file(folder, capsys):
    prefill.main(ONE)
    content = record.read("prefill")
    assert content["claim"] == "prefill" and content["peaks"]["1"] > 0
    assert "flashlib" in names(content) and content["machine"]["cores"] >= 1
    assert all(row.low <= row.milliseconds <= row.high for row in content["rows"])
    shown = capsys.readouterr().out
    assert "16/8/128 causal" in shown and str(folder / "prefill.json") in shown


def test_a_table_says_in_words_what_a_row_was_measured_on(capsys):
    times = {"one": Timing(1.0, 0.5, 2.0, 3), "other": Timing(2.0, 2.0, 2.0, 3)}
    where = {"what": "causal", "seq": 511, "cores": 2}
    rows = record.rows_of(times, {"one": 5e8, "other": 1e9}, "one", **where)
    assert [(row.rate, row.ratio) for row in rows] == [(0.5, 1.0), (0.5, 0.5)]
    assert [row[4:7] for row in rows] == [(1e3, 500, 2e3), (2e3, 2e3, 2e3)]
    record.print_table(rows, "Gflop/s", "one", {"1": 1.0, "2": 2.0, "3": 9.0})
    line = capsys.readouterr().out.splitlines()[1]
    assert line.startswith("causal, seq 511, 2 cores  one") and line.endswith("25%")


def test_the_ladder_climbs_every_rung(folder):
    ladder.main(ONE)
    content = record.read("ladder")
    assert names(content) >= set(ladder.RUNGS) >= {"pool", "tiles", "blocked"}
    assert all(row.rate > 0 for row in content["rows"])
    assert content["peaks"]["1"] > 0 and content["bandwidths"]["1"] > 0


def test_decode_and_pages_are_measured(folder):
    decode.main(ONE)
    assert names(record.read("decode")) >= {"flashlib", "flashlib, pages of 16"}
    paged.main(["--lengths", "256", "--cores", "1", "--rounds", "1"])
    ratios = {row.name: row.ratio for row in record.read("paged")["rows"]}
    assert ratios.pop(paged.WHOLE) == 1 and len(ratios) == len(paged.BLOCK_LENS)


def test_pages_hold_the_same_tokens():
    _, k, v = make_qkv(1, 64, n_heads=2, n_kv_heads=2)
    pages, table = decode.in_pages(k, v, 16)
    assert np.array_equal(pages[0][table[0]].reshape(k.shape), k)
    assert np.array_equal(pages[1][table[0]].reshape(v.shape), v)


def test_what_was_not_measured_says_how_to(folder):
    with pytest.raises(FileNotFoundError, match=r"python -m flashlib.measure.ladder"):
        record.read("ladder")


def test_time_and_memory_of_lengths_that_run_apart(folder, monkeypatch):
    monkeypatch.setattr(scaling, "measure_apart", growth.measure_here)
    monkeypatch.setattr(memory, "measure_apart", growth.measure_here)
    scaling.main(["--lengths", "64", "128", "--cores", "1", "--rounds", "1"])
    content = record.read("scaling")
    assert len(content["exponents"]["1"]) == 1 and content["gains"]["64"] == 1
    memory.main(["--lengths", "64"])
    assert record.read("memory")["memory"]["64"]["by_rights"] > 0


def test_growth_runs_here():
    found = growth.measure_here(128, 1, 1)
    assert min(found[:3]) > 0 and found.peak >= 0
    assert found.rights == 128 * 128 * 4 * (2 * 16 + 4 * 8) + 128 * 16 * 4


def test_powers_are_those_of_the_times():
    assert scaling.exponents({10: 1.0, 20: 8.0}) == [3.0]


def test_the_peak_counts_its_work():
    from flashlib.kernels.peak import count_of_flops, run_peak

    results = np.zeros(1, np.float32)
    run_peak(np.ones(1024, np.float32), results, 3)
    assert results[0] == 128
    assert count_of_flops(np.dtype(np.float32), 2) % (2 * 128 * 2) == 0


def test_code_of_the_first_call_is_code():
    for code in (first_call.FIRST, first_call.EVERYTHING):
        compile(code, "<first call>", "exec")


def test_a_whole_model_is_timed_with_every_backend(folder, monkeypatch):
    monkeypatch.setattr(Qwen3Config, "qwen3_0_6b", classmethod(lambda cls: TINY))
    whole_model.main(["--tokens", "9", "--layers", "1", "--rounds", "1"])
    rows = record.read("whole_model")["rows"]
    for what in (whole_model.FIRST, whole_model.NEXT):
        found = [row for row in rows if row.what == what]
        assert {row.name for row in found} == set(available_backends())
        assert all(row.rate > 0 and row.ratio for row in found)
