"""Every wrong decode program is caught, and the right one is not."""

import numpy as np
import pytest

from flashlib.mutants.machine_checks import CHECKS, failures
from flashlib.mutants.machine_programs import STEPS, WRONG_PROGRAMS, decode_with
from flashlib.programs import decode_tile

# Which checks see it, worked out by hand: what each fault needs in order to show.
CAUGHT_BY = {
    "products_add_up": {"two_blocks", "ragged", "hot_scores"},
    "zero_fill": {"worked_row", "ragged"},
    "max_of_the_lane": CHECKS.keys() - {"constant_values"},
    "sum_of_one_block": {"two_blocks", "ragged", "constant_values"},
    "first_sum_for_all": {"grouped_heads"},
}


def test_the_right_program_passes_every_check():
    assert failures(decode_with) == {}


def test_every_wrong_program_is_listed():
    assert WRONG_PROGRAMS.keys() == CAUGHT_BY.keys()


@pytest.mark.parametrize("name", WRONG_PROGRAMS)
def test_wrong_program_is_killed_by_what_needs_it(name):
    assert set(WRONG_PROGRAMS[name].killed_by()) == CAUGHT_BY[name]


def test_every_check_catches_something():
    assert set().union(*CAUGHT_BY.values()) == CHECKS.keys()


def test_composition_equals_the_packaged_program():
    rng = np.random.default_rng(0)
    q, k, v = (
        rng.standard_normal(shape).astype(np.float32)
        for shape in ((2, 4, 8), (150, 2, 8), (150, 2, 5))
    )
    np.testing.assert_array_equal(decode_with(q, k, v), decode_tile(q, k, v).out)


@pytest.mark.parametrize("name", WRONG_PROGRAMS)
def test_fault_is_one_sentence_and_source_shows_it(name):
    wrong = WRONG_PROGRAMS[name]
    assert wrong.fault.startswith("It") and wrong.fault.endswith(".")
    assert wrong.step in STEPS and wrong.chapter in (15, 16, 17)
    source = wrong.source()
    assert source.startswith(("```diff\n", "```python\n"))
    assert '"""' not in source and source.endswith("\n```")
