"""Make inputs, ask the oracle, and judge errors in the right unit (chapters 1, 4, 8).

The unit of an error is ``u = eps * max|v|`` over the attended values: a
weighted mean cannot be larger than the largest value, so this is what one
rounding of the result may cost. The rule: an implementation may be twice as
wrong as the plain one in the same type, and one unit more.
"""

from typing import NamedTuple

import numpy as np

from flashlib.masks import as_dense
from flashlib.output import AttentionOutput
from flashlib.problem import attention_problem
from flashlib.reference import materialized_attention

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

LSE_ABSOLUTE = 4e-6
LSE_RELATIVE = 1e-6

# Rounding of float64 in terms of that of float32.
_DOUBLE = 2.0**-29


def make_qkv(
    seq_q: int,
    seq_k: int | None = None,
    *,
    n_heads: int = 4,
    n_kv_heads: int = 2,
    head_dim: int = 8,
    head_dim_v: int | None = None,
    dtype: np.typing.DTypeLike = np.float32,
    seed: int = 0,
    heat: float = 1.0,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return seeded normal q, k and v.

    Parameters
    ----------
    seq_q, seq_k : int
        Lengths; `seq_k` defaults to `seq_q`.
    n_heads, n_kv_heads, head_dim, head_dim_v : int
        Sizes; `head_dim_v` defaults to `head_dim`.
    dtype : dtype
        Any float type of flashlib.
    seed : int
        Same seed, same numbers.
    heat : float
        Multiplies q and k, so that scores grow with its square.

    Returns
    -------
    tuple of numpy.ndarray
        ``[seq_q, n_heads, head_dim]``, ``[seq_k, n_kv_heads, head_dim]``,
        ``[seq_k, n_kv_heads, head_dim_v]``.
    """
    random = np.random.default_rng(seed)
    seq_k = seq_q if seq_k is None else seq_k
    width_v = head_dim if head_dim_v is None else head_dim_v
    q = heat * random.standard_normal((seq_q, n_heads, head_dim))
    k = heat * random.standard_normal((seq_k, n_kv_heads, head_dim))
    v = random.standard_normal((seq_k, n_kv_heads, width_v))
    return q.astype(dtype), k.astype(dtype), v.astype(dtype)


def pseudo_random(seed: int, size: int) -> np.ndarray:
    """Return `size` float32 numbers in (-1, 1), the same on every machine.

    Element i is a 32-bit hash of ``(seed, i)``: a multiplicative counter, then
    two rounds of xor-shift and multiply (the finalizer of MurmurHash3). Its
    upper 24 bits, which is what a float32 holds, place it in the interval.

    Examples
    --------
    >>> x = pseudo_random(11, 1000)
    >>> bool((abs(x) < 1).all()), bool(abs(x.mean()) < 0.05)
    (True, True)
    """
    with np.errstate(over="ignore"):
        x = np.arange(1, size + 1, dtype=np.uint32) * np.uint32(0x9E3779B9)
        x ^= np.uint32(seed) * np.uint32(0x85EBCA6B)
        x = (x ^ (x >> np.uint32(16))) * np.uint32(0x85EBCA6B)
        x = (x ^ (x >> np.uint32(13))) * np.uint32(0xC2B2AE35)
        x ^= x >> np.uint32(16)
    top = (x >> np.uint32(8)).astype(np.float64)
    return ((top + 0.5) * 2.0**-23 - 1).astype(np.float32)


def published_qkv(seq: int, index: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the inputs of the published check at 16/8 heads of 128.

    The published check takes lengths 1, 17 and 100 with seeds 11, 23 and 37
    plus the index of the length; its generator is not printed, so the numbers
    come from :func:`pseudo_random`.
    """
    sizes = ((11, 16), (23, 8), (37, 8))
    q, k, v = (
        pseudo_random(seed + index, seq * heads * 128).reshape(seq, heads, 128)
        for seed, heads in sizes
    )
    return q, k, v


def oracle(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, **options: object
) -> AttentionOutput:
    """Return attention in float64, with the score matrix built on purpose."""
    return materialized_attention(q, k, v, **options, dtype=np.float64)


def unit(q: np.ndarray, k: np.ndarray, v: np.ndarray, **options: object) -> float:
    """Return ``eps * max|v|`` over the values that some row attends.

    `eps` is that of the dtype of v; 0 if nothing is attended.
    """
    problem, (_, _, values) = attention_problem(q, k, v, **options)
    seen = as_dense(problem).any(axis=1)
    by_kv_head = seen.reshape(problem.n_kv_heads, -1, problem.seq_k).any(axis=1)
    attended = values[by_kv_head.T]
    largest = float(np.abs(attended).max(initial=0))
    return _eps(problem.dtype) * largest


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


def out_allowed(plain: float, one: float) -> float:
    """Return how far out may be off: ``2 * plain + one``.

    Parameters
    ----------
    plain : float
        Largest error of the plain implementation in the same type.
    one : float
        The unit of the call, see :func:`unit`.
    """
    return 2 * plain + one


def lse_allowed(want: np.ndarray, plain: float) -> np.ndarray:
    """Return how far every lse may be off.

    4e-6 absolute and 1e-6 relative, or twice the error of the plain lse where
    hot scores leave no implementation within that.

    Parameters
    ----------
    want : numpy.ndarray
        The right lse, ``[seq_q, n_heads]``.
    plain : float
        Largest error of the plain lse in the same type.

    Returns
    -------
    numpy.ndarray
        ``[seq_q, n_heads]``.

    Examples
    --------
    >>> lse_allowed(np.array([0.0, 6.0]), plain=3e-6)
    array([6.e-06, 1.e-05])
    """
    return np.maximum(LSE_ABSOLUTE + LSE_RELATIVE * np.abs(want), 2 * plain)


def error_report(
    result: AttentionOutput,
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    **options: object,
) -> ErrorReport:
    """Measure a result by the rule ``err <= 2 * err(plain) + 1u``.

    :func:`out_allowed` and :func:`lse_allowed` state the rule.

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
    >>> q, k, v = make_qkv(5)
    >>> result = flash_attention(q, k, v, causal=True, backend="numpy")
    >>> assert_accurate(result, q, k, v, causal=True).ok
    True
    """
    report = error_report(result, q, k, v, **options)
    assert report.ok, (
        f"out is off by {report.out:.3g} (allowed {report.allowed:.3g}, plain "
        f"{report.plain:.3g}), lse uses {report.lse:.3g} of what is allowed"
    )
    return report


def _eps(dtype: np.dtype) -> float:
    # bfloat16 is not known to NumPy's finfo; it has 8 bits of precision.
    return 2.0**-7 if dtype.name == "bfloat16" else float(np.finfo(dtype).eps)


def _largest_gap(
    got: np.ndarray, want: np.ndarray, allowed: np.ndarray | float = 1.0
) -> float:
    """Return the largest |got - want| / allowed; equal infinities are no gap."""
    got, want = got.astype(np.float64), want.astype(np.float64)
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    with np.errstate(invalid="ignore"):
        gap = np.where(same, 0, np.abs(got - want) / allowed)
    return float(np.where(np.isnan(gap), np.inf, gap).max(initial=0))
