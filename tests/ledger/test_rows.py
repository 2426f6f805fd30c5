"""The rows of the ledger: how one is found, and how a table shows it."""

import pytest

from flashlib import ArgumentError
from flashlib.ledger import Claim, Finding, claims, find
from flashlib.ledger.table import decided_table


def test_find_returns_the_row():
    assert find("S0-03").chapters == (2,)
    with pytest.raises(ArgumentError, match="claim_id has 'S9-99'"):
        find("S9-99")


def test_a_row_knows_its_source():
    sources = {row.id[:2]: row.source for row in claims()}
    assert sources["S0"] == "CPU engine chapter"
    assert sources["S4"] == "decode kernel page"
    assert Claim("D1", "", (1,), "reproduced", "").source == "doubt"


def test_ledger_table_links_what_has_a_page_and_escapes_what_is_markdown():
    row = Claim("S0-99", "One | two.", (2, 9), "reproduced", "ch02.f")
    finding = Finding("contradicted", "a[0] is 1_000")
    *_, line = decided_table([(row, finding)], {2: "02_page.ipynb"}).splitlines()
    assert line == (
        "| **S0-99** One \\| two.<br>[chapter 2](02_page.ipynb), chapter 9 "
        "| ✗ **contradicted**<br>A\\[0] is 1\\_000. |"
    )
