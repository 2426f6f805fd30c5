"""Claims of the two sources, each with a verdict from a running check (book)."""

from flashlib.ledger.rows import (
    VERDICTS,
    Claim,
    Finding,
    claims,
    find,
    run_check,
)

__all__ = [
    "VERDICTS",
    "Claim",
    "Finding",
    "claims",
    "find",
    "run_check",
]
