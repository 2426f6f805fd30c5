"""Measurements by name: which there are, and what is said to any other name."""

import ast
from pathlib import Path

import pytest

import flashlib.measure
from flashlib import ArgumentError
from flashlib.measure import MEASUREMENTS
from flashlib.measure.__main__ import main

FILES = sorted(Path(flashlib.measure.__file__).parent.glob("*.py"))


def functions(path):
    return {
        x.name
        for x in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(x, ast.FunctionDef)
    }


def test_names_are_those_of_the_modules_that_can_be_run():
    found = {path.stem for path in FILES if "main" in functions(path)}
    assert found - {"__main__"} == set(MEASUREMENTS)
    assert len(set(MEASUREMENTS)) == len(MEASUREMENTS)


def test_without_a_name_they_are_listed(capsys):
    pytest.importorskip("numba", reason="numba is not installed")
    main([])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(MEASUREMENTS)
    assert all(len(line.split()) > 3 for line in lines)


@pytest.mark.parametrize("name", ["denominators", "record", "__main__", "peer_process"])
def test_what_is_no_measurement_is_refused(name):
    with pytest.raises(ArgumentError, match=f"name has '{name}'; expected one of pre"):
        main([name])


def test_a_name_hands_on_the_other_arguments(monkeypatch):
    pytest.importorskip("numba", reason="numba is not installed")
    given = []
    monkeypatch.setattr("flashlib.measure.paged.main", given.append)
    main(["paged", "--rounds", "1"])
    assert given == [["--rounds", "1"]]
