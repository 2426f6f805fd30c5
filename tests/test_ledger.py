"""Every verdict of the ledger is what its check finds when it runs here."""

import re

import pytest

from flashlib.ledger import VERDICTS, claims, run_check

ROWS = claims()
IDS = (
    [f"S0-{i:02}" for i in range(1, 44)]
    + [f"S4-{i:02}" for i in range(1, 46)]
    + [f"D{i}" for i in range(1, 26)]
)

ABOUT_COMPILED_KERNELS = set(
    "S0-08 S0-19 S0-26 S0-27 S0-29 S0-41 S0-42 D1 D2 D24".split()
)


def test_every_claim_of_the_sources_has_its_row():
    assert [row.id for row in ROWS] == IDS


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_row_is_well_formed(row):
    assert row.claim.endswith(".") and row.claim == " ".join(row.claim.split())
    assert row.chapters and all(1 <= chapter <= 23 for chapter in row.chapters)
    assert len(set(row.chapters)) == len(row.chapters)
    assert row.verdict in VERDICTS


def test_claims_differ():
    assert len({row.claim for row in ROWS}) == len(ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_check_stands_with_the_first_chapter(row):
    assert re.fullmatch(rf"ch{row.chapters[0]:02d}\.\w+", row.check)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_check_finds_the_verdict(row):
    if row.id in ABOUT_COMPILED_KERNELS:
        pytest.importorskip("numba", reason="numba is not installed")
    finding = run_check(row)
    assert finding.verdict == row.verdict, finding.evidence
    assert re.search(r"\d", finding.evidence), finding.evidence
    assert finding.evidence == " ".join(finding.evidence.split())
