"""Every mutant of the museum is caught, and the right loop is not."""

import inspect

import numpy as np
import pytest

from flashlib.contract import CHECKS, failures
from flashlib.mutants import MACHINE_MUTANTS, MUTANTS, Mutant, PlainLoop
from flashlib.mutants.loop.paging import PagedLoop

STANDING = (
    "no_max no_rescale_l no_rescale_acc inverse_rescale ge_for_gt off_by_one "
    "dropped_last_tile gqa_tile_order top_left_causal base_2_lse"
).split()

# What the published check of the source cannot see, by chapter of the mutants.
SURVIVORS = {
    4: {"no_max", "ge_for_gt", "base_2_lse", "sink_per_tile"},
    5: {"no_reset", "short_exp", "nan_laundering", "no_empty_guard"},
    6: {"top_left_causal", "window_off_by_one", "finite_mask", "zero_times_nan"},
}


@pytest.mark.parametrize("loop", [PlainLoop, PagedLoop])
def test_the_right_loop_passes_every_check(loop):
    assert failures(loop()) == {}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_killed(name):
    assert MUTANTS[name].killed_by()


def test_loops_and_programs_are_mutants_alike():
    for mutants in (MUTANTS, MACHINE_MUTANTS):
        assert mutants and all(isinstance(x, Mutant) for x in mutants.values())
        assert all(name == mutant.name for name, mutant in mutants.items())


def test_the_ten_stand():
    assert set(STANDING) <= set(MUTANTS)


# Faults that used to slip through, and the one check that sees them first.
SEEN_BY = {
    "rescale_in_part": "wide_heads",
    "first_columns": "wide_heads",
    "one_long_chain": "error_when_long",
    "zero_weight_unread": "nan_under_zero_weight",
    "clipped_out": "large_values",
    "low_bias_hides": "finite_bias_attends",
    "rows_of_a_block": "causal_many_rows",
    "small_softcap_ignored": "small_softcap",
    "softcap_by_reciprocal": "extreme_softcap",
    "nan_laundering": "weightless_row",
    "sink_in_every_part": "sink_counted_once",
    "empty_part_merge": "zero_sizes",
    "stale_page": "around_the_tile",
}


@pytest.mark.parametrize("name", SEEN_BY)
def test_the_check_made_for_a_fault_sees_it(name):
    assert SEEN_BY[name] in MUTANTS[name].killed_by()


@pytest.mark.parametrize("chapter", SURVIVORS)
def test_the_published_check_alone_does_not_kill(chapter):
    for name in SURVIVORS[chapter]:
        mutant = MUTANTS[name]
        assert mutant.chapter == chapter
        CHECKS["published"].run(mutant.attention)


@pytest.mark.parametrize("name", ["no_rescale_l", "no_rescale_acc", "off_by_one"])
def test_the_published_check_kills_what_it_can(name):
    with pytest.raises(AssertionError, match="an error of .* expected less than 1e-4"):
        CHECKS["published"].run(MUTANTS[name].attention)


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_changes_methods_of_the_loop_only(name):
    mutant = MUTANTS[name]
    own = {n for n, x in vars(type(mutant.attention)).items() if inspect.isfunction(x)}
    assert own == set(mutant.changed()) != set()


@pytest.mark.parametrize("name", MUTANTS)
def test_source_shows_the_fault(name):
    source = MUTANTS[name].source()
    assert source.startswith("```diff\n") and source.endswith("\n```")
    changes = [line for line in source.splitlines() if line.startswith(("+", "-"))]
    assert 1 <= len(changes) <= 16
    assert '"""' not in source
    assert source._repr_markdown_() == source


@pytest.mark.parametrize("name", MUTANTS)
def test_fault_is_one_sentence(name):
    fault = MUTANTS[name].fault
    assert fault.startswith("It") and fault.endswith(".") and "\n" not in fault


def test_faults_differ():
    assert len({mutant.fault for mutant in MUTANTS.values()}) == len(MUTANTS)


def test_no_max_on_the_running_row():
    scores = np.float32([1, 3, 2, 5, 4, 0]).reshape(6, 1, 1)
    one = np.ones((1, 1, 1), np.float32)
    call = one, scores, scores
    right, wrong = PlainLoop(), MUTANTS["no_max"].attention
    np.testing.assert_allclose(wrong(*call, tile=2).out, right(*call, tile=2).out, 1e-6)
    hot = one * 100, scores, scores
    assert right(*hot, tile=2).out.item() == 5
    assert np.isnan(wrong(*hot, tile=2).out.item())
