"""Every wrong decode kernel is caught, and the right one is not."""

import pytest

from flashlib.mutants.kernel_checks import CHECKS, failures
from flashlib.mutants.kernel_programs import WRONG_KERNELS

# Worked out by hand: what each fault needs in order to show.
WINDOWS = {"plain_window", "wrapped_window", "short_window"}
CAUGHT_BY = {
    "finite_fill": {"empty_row"},
    "filled_with_zero": {"hidden_maximum", "empty_row", *WINDOWS}
    | {"sinks_of_heads_and_tokens"},
    "never_wraps": {"wrapped_window"},
    "clamped_end_wraps": {"short_window"},
    "sinks_token_by_token": {"sinks_of_heads_and_tokens"},
    "one_sink": {"sinks_of_heads", "sinks_of_heads_and_tokens"},
}


def test_the_right_kernel_passes_every_check():
    assert failures() == {}


def test_every_wrong_kernel_is_listed():
    assert WRONG_KERNELS.keys() == CAUGHT_BY.keys()


@pytest.mark.parametrize("name", WRONG_KERNELS)
def test_wrong_kernel_is_killed_by_what_needs_it(name):
    wrong = WRONG_KERNELS[name]
    right = getattr(wrong.module, wrong.step)
    assert set(wrong.killed_by()) == CAUGHT_BY[name]
    assert getattr(wrong.module, wrong.step) is right


def test_every_check_catches_something():
    assert CHECKS.keys() == set().union(*CAUGHT_BY.values())


@pytest.mark.parametrize("name", WRONG_KERNELS)
def test_fault_is_one_sentence_and_source_shows_it(name):
    wrong = WRONG_KERNELS[name]
    assert wrong.fault.startswith("It") and wrong.fault.endswith(".")
    assert wrong.chapter in (18, 19, 20)
    source = wrong.source()
    assert source.startswith("```diff\n") and '"""' not in source
    assert "\n- " in source and source.endswith("\n```")
