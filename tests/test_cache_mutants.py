"""Every wrong cache, tile, core or prefill kernel is caught, and the right one not."""

import pytest

from flashlib.mutants.cache_checks import CHECKS, failures
from flashlib.mutants.cache_programs import WRONG_CACHES

# Worked out by hand: what each fault needs in order to show.
CAUGHT_BY = {
    "table_as_it_is": {"cut_pages"},
    "sink_in_every_tile": {"sink_over_two_tiles"},
    "old_sum_not_corrected": {"two_tiles", "sink_over_two_tiles", "two_cores_in_tiles"},
    "first_query_decides": {"every_fourth_row"},
}


def test_the_right_kernels_pass_every_check():
    assert failures() == {}


def test_every_wrong_kernel_is_listed():
    assert WRONG_CACHES.keys() == CAUGHT_BY.keys()


@pytest.mark.parametrize("name", WRONG_CACHES)
def test_wrong_kernel_is_killed_by_what_needs_it(name):
    wrong = WRONG_CACHES[name]
    right = getattr(wrong.owner, wrong.step)
    assert set(wrong.killed_by()) == CAUGHT_BY[name]
    assert getattr(wrong.owner, wrong.step) is right


@pytest.mark.parametrize("name", WRONG_CACHES)
def test_fault_is_one_sentence_and_source_shows_it(name):
    wrong = WRONG_CACHES[name]
    assert wrong.fault.startswith("It") and wrong.fault.endswith(".")
    assert wrong.chapter in (21, 22, 23) and len(CHECKS) == 10
    source = wrong.source()
    assert source.startswith("```diff\n") and '"""' not in source
    assert "\n- " in source and source.endswith("\n```")
