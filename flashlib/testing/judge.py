"""Measure the errors of a result, and judge them by the rule (chapter 8)."""

from typing import NamedTuple

import numpy as np

from flashlib.output import AttentionOutput
from flashlib.reference import materialized_attention
from flashlib.testing.exact import oracle, unit
from flashlib.testing.rule import lse_allowed, out_allowed

__all__ = ["ErrorReport", "assert_accurate", "error_report", "error_units"]

# Rounding of float64 in terms of that of float32.
_DOUBLE = 2.0**-29


def error_units(
    result: AttentionOutput,
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    **options: object,
) -> float:
    """Return the largest error of `result.out` against the oracle, in units."""
    error = _largest_gap(result.out, oracle(q, k, v, **options).out)
    one = unit(q, k, v, **options)
    return error / one if one else error


class ErrorReport(NamedTuple):
    """Errors of one call against the oracle, maxima over the call.

    Attributes
    ----------
    out, plain, allowed : float
        Error of the result, of the plain implementation in the same type, and
        what the rule allows.
    lse : float
        Largest share of the allowed lse error that is used up.
    """

    out: float
    plain: float
    allowed: float
    lse: float

    @property
    def ok(self) -> bool:
        """Whether both errors are within the rule."""
        return self.out <= self.allowed and self.lse <= 1


def error_report(
    result: AttentionOutput,
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    **options: object,
) -> ErrorReport:
    """Measure a result by the rule ``err <= 2 * err(plain) + 1u``.

    :func:`~flashlib.testing.rule.out_allowed` and
    :func:`~flashlib.testing.rule.lse_allowed` state the rule.

    The oracle computes in float64, so a float64 result cannot be told from it
    by its own type. There the error of the plain float32 implementation stands
    in, scaled to the rounding of float64, and the oracle is allowed its own
    share: ``3 * err(plain) + 2u``.

    Parameters
    ----------
    result : AttentionOutput
        What is judged.
    q, k, v, options
        The call that made it, in any of the attention functions.
    """
    want = oracle(q, k, v, **options)
    one = unit(q, k, v, **options)
    plain, plain_lse = _plain_errors(q, k, v, **options)
    allowed, of_lse = out_allowed(plain, one), lse_allowed(want.lse, plain_lse)
    if result.lse.dtype == np.float64:
        plain, of_lse = plain * _DOUBLE, of_lse * _DOUBLE
        allowed = 3 * plain + 2 * one
    return ErrorReport(
        out=_largest_gap(result.out, want.out),
        plain=plain,
        allowed=allowed,
        lse=_largest_gap(result.lse, want.lse, of_lse),
    )


def _plain_errors(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, **options: object
) -> tuple[float, float]:
    """Return the errors of plain float32 (or half) attention, of out and lse."""
    if q.dtype == np.float64:
        q, k, v = (x.astype(np.float32) for x in (q, k, v))
    plain, want = materialized_attention(q, k, v, **options), oracle(q, k, v, **options)
    return _largest_gap(plain.out, want.out), _largest_gap(plain.lse, want.lse)


def assert_accurate(
    result: AttentionOutput,
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    **options: object,
) -> ErrorReport:
    """Raise AssertionError with the measured errors unless the rule holds.

    Examples
    --------
    >>> from flashlib import flash_attention
    >>> from flashlib.testing import make_qkv
    >>> q, k, v = make_qkv(5)
    >>> result = flash_attention(q, k, v, causal=True, backend="numpy")
    >>> assert_accurate(result, q, k, v, causal=True).ok
    True
    """
    report = error_report(result, q, k, v, **options)
    assert report.ok, (
        f"out has an error of {report.out:.3g}; expected at most {report.allowed:.3g}, "
        f"where plain attention has {report.plain:.3g}; lse uses {report.lse:.3g} of "
        "what it is allowed"
    )
    return report


def _largest_gap(
    got: np.ndarray, want: np.ndarray, allowed: np.ndarray | float = 1.0
) -> float:
    """Return the largest |got - want| / allowed; equal infinities are no gap."""
    got, want = got.astype(np.float64), want.astype(np.float64)
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    with np.errstate(invalid="ignore"):
        gap = np.where(same, 0, np.abs(got - want) / allowed)
    return float(np.where(np.isnan(gap), np.inf, gap).max(initial=0))
