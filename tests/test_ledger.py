"""Every verdict of the ledger is what its check finds when it runs here."""

import re

import pytest
from project import ROOT

from flashlib.ledger import FINISHED, VERDICTS, claims, run_check

ROWS = claims()
OWNED = [row for row in ROWS if row.chapters[0] in FINISHED]
IDS = (
    [f"S0-{i:02}" for i in range(1, 44)]
    + [f"S4-{i:02}" for i in range(1, 46)]
    + [f"D{i}" for i in range(1, 26)]
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
def test_open_rows_have_no_check_and_others_have_one(row):
    assert (row.verdict == "open") == (row.check == "")
    if row.check:
        assert re.fullmatch(rf"ch{row.chapters[0]:02d}\.\w+", row.check)


@pytest.mark.parametrize("row", OWNED, ids=lambda row: row.id)
def test_row_of_a_finished_chapter_is_decided(row):
    assert row.verdict != "open"


@pytest.mark.parametrize("row", [r for r in ROWS if r.check], ids=lambda row: row.id)
def test_check_finds_the_verdict(row):
    finding = run_check(row)
    assert finding.verdict == row.verdict, finding.evidence
    assert re.search(r"\d", finding.evidence), finding.evidence
    assert finding.evidence == " ".join(finding.evidence.split())


def test_finished_chapters_are_those_in_the_contents():
    toc = (ROOT / "_toc.yml").read_text(encoding="utf-8")
    written = {int(n) for n in re.findall(r"notebooks/(\d\d)_", toc)}
    assert set(FINISHED) == written - {0}
