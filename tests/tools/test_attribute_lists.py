"""On the API pages every attribute of a list has an entry of its own."""

from conftest import require

require("sphinx")
from attribute_lists import split_lists  # noqa: E402 - Sphinx may be missing


def test_each_name_gets_the_type_and_the_words():
    lines = ["Attributes", "----------", "low, high : float", "    In ns,", "    each."]
    low, high = ([f"{name} : float", *lines[3:]] for name in ("low", "high"))
    assert split_lists(lines) == [*lines[:2], *low, *high]


def test_what_is_no_list_of_attributes_stays():
    for head in ("Parameters", "Notes"):
        lines = [head, "-" * len(head), "low, high : float", "    In ns."]
        assert split_lists(lines) == lines
    one = ["Attributes", "----------", "low : float", "    As in a, b : c.", ""]
    assert split_lists(one) == one


def test_the_section_ends_where_the_next_begins():
    lines = ["Attributes", "----------", "a : int", "", "Notes", "-----", "b, c : d"]
    assert split_lists(lines) == lines
