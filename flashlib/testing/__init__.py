"""Make inputs, ask the oracle, and judge errors in the right unit (chapters 1, 4, 8).

The unit of an error is ``u = eps * max|v|`` over the attended values: a
weighted mean cannot be larger than the largest value, so this is what one
rounding of the result may cost. The rule: an implementation may be twice as
wrong as the plain one in the same type, and one unit more.
"""

from flashlib.testing.exact import oracle, unit
from flashlib.testing.inputs import make_qkv, pseudo_random, published_qkv
from flashlib.testing.judge import (
    ErrorReport,
    assert_accurate,
    error_report,
    error_units,
)
from flashlib.testing.rule import lse_allowed, out_allowed

__all__ = [
    "ErrorReport",
    "assert_accurate",
    "error_report",
    "error_units",
    "lse_allowed",
    "make_qkv",
    "oracle",
    "out_allowed",
    "pseudo_random",
    "published_qkv",
    "unit",
]
