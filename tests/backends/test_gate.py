"""The gate: which backend is picked, and what each says to an explicit algorithm."""

import numpy as np
import pytest

import flashlib
from flashlib import Refused, backends, get_backend
from flashlib.backends import Choice
from flashlib.problem import attention_problem

AVAILABLE = flashlib.available_backends()
ONE = np.ones((2, 1, 1), np.float32)


def test_names_and_the_automatic_choice():
    assert AVAILABLE[0] == "numpy"
    for name in AVAILABLE:
        backend = get_backend(name)
        assert backend.name == name and get_backend(name) is backend
        assert get_backend(backend) is backend
    fastest = "blocked" if "blocked" in AVAILABLE else "numpy"
    assert get_backend("auto").name == get_backend().name == fastest


@pytest.mark.parametrize(
    "broken, best",
    [((), "blocked"), (("blocked",), "scalar"), (("blocked", "scalar"), "numpy")],
)
def test_the_next_best_steps_in_where_one_cannot_be_loaded(monkeypatch, broken, best):
    def load(name):
        if name in broken:
            raise ImportError(name)
        return name

    monkeypatch.setattr(backends, "_present", lambda package: True)
    monkeypatch.setattr(backends, "_load", load)
    assert get_backend() == best
    monkeypatch.setattr(backends, "_present", lambda package: package is None)
    assert get_backend() == "numpy"


@pytest.mark.parametrize("name", AVAILABLE)
def test_choices_have_reasons(name):
    problem, _ = attention_problem(ONE, ONE, ONE)
    choice = get_backend(name).choose(problem)
    assert isinstance(choice, Choice) and len(choice.reason) > 10
    assert choice.algorithm == ("materialized" if name == "blas" else "flash")


def test_what_is_asked_for_is_the_reason():
    problem, _ = attention_problem(ONE, ONE, ONE)
    explicit = get_backend("numpy").choose(problem, "materialized")
    assert explicit == ("materialized", "asked for")


@pytest.mark.parametrize("name", ["scalar", "simd", "pool", "blocked"])
def test_backends_without_a_score_matrix_say_so(name):
    if name not in AVAILABLE:
        pytest.skip("needs Numba")
    with pytest.raises(Refused, match="numpy backend"):
        flashlib.flash_attention(ONE, ONE, ONE, backend=name, algorithm="materialized")
