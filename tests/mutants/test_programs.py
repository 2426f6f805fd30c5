"""Every wrong program for the machine is caught, and the right ones are not."""

import re
from types import SimpleNamespace

import pytest

from flashlib.mutants import MACHINE_MUTANTS
from flashlib.mutants.machine import (
    cache_checks,
    mask_checks,
    step_checks,
    wrong_caches,
    wrong_masks,
    wrong_steps,
)
from flashlib.mutants.machine.checks import named, run_checks
from flashlib.mutants.machine.listing import exhibits, replacements
from flashlib.mutants.machine.wrong_program import wing
from flashlib.mutants.museum import WINGS

# What each fault needs in order to show, worked out by hand.
FIVE_STEPS = {
    "products_add_up": {"two_blocks", "ragged", "hot_scores"},
    "zero_fill": {"worked_row", "ragged"},
    "max_of_the_lane": step_checks.CHECKS.keys() - {"constant_values"},
    "sum_of_one_block": {"two_blocks", "ragged", "constant_values"},
    "first_sum_for_all": {"grouped_heads"},
}
WINDOWS = {"plain_window", "wrapped_window", "short_window"}
MASKS = {
    "finite_fill": {"empty_row"},
    "filled_with_zero": {"hidden_maximum", "empty_row", *WINDOWS}
    | {"sinks_of_heads_and_tokens"},
    "never_wraps": {"wrapped_window"},
    "clamped_end_wraps": {"short_window"},
    "sinks_token_by_token": {"sinks_of_heads_and_tokens"},
    "one_sink": {"sinks_of_heads", "sinks_of_heads_and_tokens"},
}
CACHES = {
    "table_as_it_is": {"cut_pages"},
    "pages_in_line": {"whole_pages", "cut_pages"},
    # tiles of 128 slots have one per partition, and no order to get wrong
    "values_dealt_out": {"flat_cache", "sink_in_one_tile"},
    "sink_in_every_tile": {"sink_over_two_tiles"},
    "old_sum_not_corrected": {"two_tiles", "sink_over_two_tiles", "two_cores_in_tiles"},
    "own_maximum_twice": {"two_cores", "two_cores_in_tiles"},
    "first_query_decides": {"every_fourth_row"},
    "last_query_decides": {"whole_prompt", "every_fourth_row"},
}
TABLE = (
    (wrong_steps.FAULTS, step_checks.CHECKS, FIVE_STEPS, (15, 16, 17)),
    (wrong_masks.FAULTS, mask_checks.CHECKS, MASKS, (18, 19, 20)),
    (wrong_caches.FAULTS, cache_checks.CHECKS, CACHES, (21, 22, 23)),
)
CAUGHT_BY = {**FIVE_STEPS, **MASKS, **CACHES}

every_wing = pytest.mark.parametrize("programs, checks, caught, chapters", TABLE)
every_wrong_program = pytest.mark.parametrize("name", MACHINE_MUTANTS)


@every_wing
def test_the_right_programs_pass_every_check(programs, checks, caught, chapters):
    assert run_checks(checks) == {}


@every_wing
def test_every_wrong_program_is_listed(programs, checks, caught, chapters):
    assert list(programs) == list(caught)
    assert sorted({wrong.chapter for wrong in programs.values()}) == list(chapters)


@every_wing
def test_every_check_catches_something(programs, checks, caught, chapters):
    assert checks.keys() == set().union(*caught.values())


def test_no_two_wrong_programs_share_a_name():
    assert tuple(WINGS.values()) == tuple(programs for programs, *_ in TABLE)
    assert MACHINE_MUTANTS.keys() == CAUGHT_BY.keys()
    assert len(MACHINE_MUTANTS) == sum(map(len, WINGS.values()))


def test_no_two_checks_share_a_name():
    names = [name for _, checks, *_ in TABLE for name in checks]
    assert len(names) == len(set(names))


@every_wrong_program
def test_wrong_program_is_killed_by_what_needs_it(name):
    wrong = MACHINE_MUTANTS[name]
    right = getattr(wrong.owner, wrong.step)
    assert wrong.name == name and set(wrong.killed_by()) == CAUGHT_BY[name]
    assert getattr(wrong.owner, wrong.step) is right


@every_wrong_program
def test_fault_is_one_sentence(name):
    fault = MACHINE_MUTANTS[name].fault
    assert fault.startswith("It") and fault.endswith(".") and "\n" not in fault


@every_wrong_program
def test_source_shows_the_fault(name):
    wrong = MACHINE_MUTANTS[name]
    source = wrong.source()
    assert '"""' not in source and source.endswith("\n```")
    assert source._repr_markdown_() == source
    head, place, *_ = source.splitlines()
    if head == "```diff":
        assert place == f"@@ {wrong.place} @@"
        assert re.search(r"^[-+] ", source, re.M)
    else:
        assert head == "```python" and place == f"# in place of {wrong.place}"
        assert f"{wrong.step}(" in source


@every_wrong_program
def test_only_public_functions_are_replaced(name):
    assert not MACHINE_MUTANTS[name].step.startswith("_")


# --- the frame ----------------------------------------------------------------------


def right_sum(x):
    """Add."""
    # everything counts
    return sum(x)


def half_sum(x):
    """It forgets what comes second."""
    return sum(x[::2])


def right_sum_halved(x):
    """It halves the sum."""
    return right_sum(x) / 2


def sum_of_two():
    """Two numbers."""
    if OWNER.total([1, 2]) != 3:
        raise AssertionError("two numbers do not add up")


def sum_of_one():
    """One number."""
    assert OWNER.total([1]) == 1


OWNER = SimpleNamespace(total=right_sum, right_sum=right_sum)
ADDING = named(sum_of_two, sum_of_one)


def test_functions_are_named_in_their_order():
    assert list(ADDING.items()) == [
        ("sum_of_two", sum_of_two),
        ("sum_of_one", sum_of_one),
    ]


def put_wrong(step, wrong):
    """The wrong program that a wing of one makes."""
    (program,) = wing(ADDING, (4, OWNER, step, wrong)).values()
    return program


def test_a_wing_holds_each_program_to_its_checks():
    wrong = put_wrong("total", half_sum)
    assert wrong.name == "half_sum" and wrong.chapter == 4
    assert wrong.failures() == {"sum_of_two": "two numbers do not add up"}
    assert wrong.killed_by() == ("sum_of_two",)
    assert OWNER.total is right_sum


def test_its_checks_run_once():
    seen = []
    checks = {"counted": lambda: seen.append(OWNER.total)}
    (wrong,) = wing(checks, (4, OWNER, "total", half_sum)).values()
    assert wrong.killed_by() == tuple(wrong.failures()) == ()
    assert seen == [half_sum]


def test_the_right_function_comes_back_after_an_error():
    with (
        pytest.raises(ZeroDivisionError),
        put_wrong("total", half_sum).in_place(),
    ):
        assert OWNER.total is half_sum
        raise ZeroDivisionError
    assert OWNER.total is right_sum


def test_an_error_that_is_no_assertion_is_not_a_catch():
    def broken(x):
        """It divides by zero."""
        return x / 0

    with pytest.raises(TypeError):
        put_wrong("total", broken).killed_by()
    assert OWNER.total is right_sum


def test_source_marks_the_changed_line():
    source = put_wrong("total", half_sum).source()
    assert source.splitlines()[2:-1] == [
        "- # everything counts",
        "- return sum(x)",
        "+ return sum(x[::2])",
    ]


def test_source_of_what_calls_the_right_one_is_shown_as_it_stands():
    source = put_wrong("right_sum", right_sum_halved).source()
    assert source.splitlines()[2:-1] == ["return right_sum(x) / 2"]


def test_an_exhibit_names_what_catches_it():
    exhibit = put_wrong("total", half_sum).exhibit()
    assert "<code>half_sum</code> It forgets what comes second.</summary>" in exhibit
    assert "Caught by 1 check:\n\n- `sum_of_two`: two numbers" in exhibit


# --- the page -----------------------------------------------------------------------


def test_a_row_links_the_chapter_and_names_what_is_replaced():
    wrong = put_wrong("total", half_sum)
    *_, linked = replacements({"half_sum": wrong}, {4: "04_page.ipynb"}).splitlines()
    assert linked == (
        "| `half_sum`<br>It forgets what comes second. [Chapter 4](04_page.ipynb) "
        f"| `right_sum`<br>{{py:mod}}`{__name__} <{__name__}>` |"
    )
    steps = replacements(wrong_steps.FAULTS, {})
    assert "{py:mod}`decode_tile <flashlib.programs.decode_tile>`" in steps
    assert "comes second. Chapter 4 |" in replacements({"half_sum": wrong}, {})


def test_exhibits_stand_under_their_chapters():
    blocks = exhibits(wrong_steps.FAULTS, {16: "16_page.ipynb"}).split("\n\n")
    heads = [block for block in blocks if "Chapter" in block]
    assert heads == ["Chapter 15", "[Chapter 16](16_page.ipynb)", "Chapter 17"]
    assert sum(block.startswith("<details>") for block in blocks) == 5
