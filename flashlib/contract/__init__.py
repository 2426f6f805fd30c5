"""The contract as checks that run over any attention function (book).

Examples
--------
>>> from flashlib.contract import CHECKS, failures
>>> CHECKS["window_counts_self"].rule
'A window of w tokens counts the token itself.'
>>> from flashlib.mutants import PlainLoop
>>> failures(PlainLoop())
{}
"""

from flashlib.contract.check import Check
from flashlib.contract.run import CHECKS, failures

__all__ = ["CHECKS", "Check", "failures"]
