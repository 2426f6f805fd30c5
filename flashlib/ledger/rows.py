"""Read the claims and run the check behind a verdict (book)."""

import importlib
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from flashlib.errors import ArgumentError

VERDICTS = ("reproduced", "contradicted", "not testable here")


class Finding(NamedTuple):
    """What a check found: its verdict, and the numbers behind it in one sentence."""

    verdict: str
    evidence: str

    @classmethod
    def of(cls, holds: bool, evidence: str) -> "Finding":
        """Return the verdict on a claim that was tried here and holds or does not."""
        return cls("reproduced" if holds else "contradicted", evidence)


@dataclass(frozen=True)
class Claim:
    """One claim of a source.

    Parameters
    ----------
    id : str
        ``S0-..`` for the CPU engine chapter, ``S4-..`` for the decode kernel page,
        ``D..`` for a doubt about one of them.
    claim : str
        In our own words.
    chapters : tuple of int
        Where the book treats it; the first one owns the check.
    verdict : str
        One of `VERDICTS`.
    check : str
        ``chNN.function`` in `flashlib.ledger.checks`.
    """

    id: str
    claim: str
    chapters: tuple[int, ...]
    verdict: str
    check: str

    @property
    def source(self) -> str:
        """Name the source a claim is from."""
        return {"S0": "CPU engine chapter", "S4": "decode kernel page"}.get(
            self.id[:2], "doubt"
        )


@cache
def _data() -> dict:
    return tomllib.loads(files(__package__).joinpath("claims.toml").read_text("utf-8"))


def claims() -> tuple[Claim, ...]:
    """Return every row of the ledger in the order of the data file."""
    return tuple(
        Claim(**{**row, "chapters": tuple(row["chapters"])}) for row in _data()["claim"]
    )


def find(claim_id: str) -> Claim:
    """Return one row by its id.

    Raises
    ------
    ArgumentError
        For an id that is not in the data file.
    """
    for row in claims():
        if row.id == claim_id:
            return row
    raise ArgumentError(
        f"claim_id has {claim_id!r}; expected an id of claims.toml; every "
        "claim has a row there; flashlib.ledger.claims() lists them"
    )


def run_check(claim: Claim) -> Finding:
    """Run the check behind a row and return what it found now."""
    module, name = claim.check.split(".")
    checks = importlib.import_module(f"{__package__}.checks.{module}")
    return getattr(checks, name)()
