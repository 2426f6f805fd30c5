"""The rows of the ledger: how one is found, and how a table shows it."""

import pytest

from flashlib import ArgumentError
from flashlib.ledger import VERDICTS, Claim, Finding, claims, find
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


@pytest.mark.parametrize(
    "evidence, shown",
    [
        ("the error is 1 unit", "The error is 1 unit."),
        ("One unit is left.", "One unit is left."),
        ("tile_size is 4", "tile\\_size is 4."),  # a name is spelled as in the code
        ("`f` * $2 < 3", "\\`f\\` \\* \\$2 \\< 3."),
    ],
)
def test_evidence_is_shown_as_a_sentence_that_opens_no_markdown(evidence, shown):
    row = Claim("S0-99", "One.", (2,), "reproduced", "ch02.f")
    table = decided_table([(row, Finding("reproduced", evidence))], {})
    assert table.endswith(f"| ✓ **reproduced**<br>{shown} |")


def test_every_verdict_has_a_mark_of_its_own():
    row = Claim("S0-99", "One.", (2,), "reproduced", "ch02.f")
    findings = [(row, Finding(verdict, "1")) for verdict in VERDICTS]
    _, _, *lines = decided_table(findings, {}).splitlines()
    marks = [line.partition("| ")[2].partition("| ")[2][0] for line in lines]
    assert marks == ["✓", "✗", "–"]
