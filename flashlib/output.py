"""Return attention as a mean and a log sum, which can be merged (chapters 2, 4).

`out` alone is not enough to add more keys later. With `lse`, the log of the
denominator, two finished results over disjoint keys merge into the result
over all of them.
"""

from typing import NamedTuple

import numpy as np

from flashlib.errors import ArgumentError, DTypeError, ShapeError, shown
from flashlib.validation import as_array, is_float

__all__ = ["AttentionOutput", "finite_or_zero", "merge_states"]


class AttentionOutput(NamedTuple):
    """What every attention function returns.

    Attributes
    ----------
    out : ndarray
        Weighted means of the values, ``[seq_q, n_heads, head_dim_v]``.
    lse : ndarray
        Natural log of the sum of exponentiated scores, ``[seq_q, n_heads]``.
        ``-inf`` marks a row that attends to nothing.
    """

    out: np.ndarray
    lse: np.ndarray

    @classmethod
    def empty(
        cls, rows: tuple[int, ...], head_dim_v: int, dtype: np.dtype
    ) -> "AttentionOutput":
        """Return room for a result that is not computed yet.

        Parameters
        ----------
        rows : tuple of int
            Shape of `lse`, such as ``(seq_q, n_heads)``.
        head_dim_v : int
        dtype : dtype
        """
        return cls(np.empty((*rows, head_dim_v), dtype), np.empty(rows, dtype))

    def rounded(self, dtype: np.dtype) -> "AttentionOutput":
        """Return `out` in the type of the caller; what is too large becomes inf."""
        if self.out.dtype == dtype:
            return self
        with np.errstate(all="ignore"):
            return AttentionOutput(self.out.astype(dtype, copy=False), self.lse)


def finite_or_zero(m: np.ndarray) -> np.ndarray:
    """Return what scores are measured against: `m`, but 0 where `m` is -inf."""
    m = np.asarray(m)
    return np.where(m == -np.inf, m.dtype.type(0), m)


def merge_states(a: AttentionOutput, b: AttentionOutput) -> AttentionOutput:
    """Merge two attention results over disjoint sets of keys.

    The result equals attention over both sets at once, to the rounding of
    `lse`. A side whose lse is ``-inf`` holds no keys and is not read.

    Parameters
    ----------
    a, b : AttentionOutput
        Results for the same queries, ``out [..., head_dim_v]`` and
        ``lse [...]``, of one dtype each.

    Returns
    -------
    AttentionOutput
        Same shapes and dtypes as `a` and `b`.

    Raises
    ------
    ArgumentError
        If a side is no pair of arrays.
    ShapeError
        If the shapes of the two differ, or out and lse do not belong together.
    DTypeError
        If an array is not of a float type, or the types of the two differ.

    Notes
    -----
    Both sides ``-inf`` gives ``(0, -inf)``. If one of these carries NaN in
    `out` (it attended keys, and all of its scores were ``-inf``), NaN stays.

    Examples
    --------
    >>> a = AttentionOutput(np.array([1.0]), np.array(0.0))
    >>> b = AttentionOutput(np.array([5.0]), np.array(np.log(3.0)))
    >>> merge_states(a, b).out
    array([4.])
    """
    (a_out, a_lse), (b_out, b_lse) = _checked(a, b)
    work = a_lse.dtype
    m = np.maximum(a_lse, b_lse)
    nobody = m == -np.inf
    with np.errstate(all="ignore"):
        a_weight = np.exp(a_lse - finite_or_zero(m))
        b_weight = np.exp(b_lse - finite_or_zero(m))
        total = a_weight + b_weight
        lse = np.where(nobody, m, m + np.log(total))
        mean = _weighted(a_out, a_lse, a_weight) + _weighted(b_out, b_lse, b_weight)
        mean = mean / total[..., None]
        # 0 for rows without keys, but 0 / 0 stays NaN.
        undefined = np.isnan(a_out) | np.isnan(b_out)
        empty = np.where(undefined, work.type(np.nan), work.type(0))
        out = np.where(nobody[..., None], empty, mean)
    return AttentionOutput(out.astype(a_out.dtype), lse.astype(work))


def _weighted(out: np.ndarray, lse: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return ``weight * out``; a side that holds no keys is not read."""
    product = weight[..., None] * out.astype(weight.dtype)
    return np.where((lse == -np.inf)[..., None], weight.dtype.type(0), product)


def _pair(name: str, side: object) -> tuple[np.ndarray, np.ndarray]:
    """Return out and lse of one side as arrays."""
    if not isinstance(side, (tuple, list)) or len(side) != 2:
        raise ArgumentError(
            f"{name} has {shown(side)}; expected the pair (out, lse) that an "
            "attention function returns; out alone cannot be merged"
        )
    return tuple(
        as_array(f"{name}.{part}", x)
        for part, x in zip(("out", "lse"), side, strict=True)
    )


def _checked(
    a: AttentionOutput, b: AttentionOutput
) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Return both pairs as arrays, or raise."""
    pairs = tuple(_pair(name, side) for name, side in zip("ab", (a, b), strict=True))
    for name, (out, lse) in zip("ab", pairs, strict=True):
        if out.ndim < 1 or out.shape[:-1] != lse.shape:
            raise ShapeError(
                f"{name} has out {out.shape} and lse {lse.shape}; expected out "
                "[..., head_dim_v] and lse [...]; every row has one lse"
            )
        if not (is_float(out.dtype) and is_float(lse.dtype)):
            raise DTypeError(
                f"{name} has out {out.dtype} and lse {lse.dtype}; expected floats; a "
                "mean and a logarithm have fractions"
            )
    (a_out, a_lse), (b_out, b_lse) = pairs
    if a_out.shape != b_out.shape:
        raise ShapeError(
            f"a and b have out {a_out.shape} and {b_out.shape}; expected equal shapes; "
            "both sides answer the same queries"
        )
    if (a_out.dtype, a_lse.dtype) != (b_out.dtype, b_lse.dtype):
        raise DTypeError(
            f"a and b have {a_out.dtype} and {b_out.dtype}, lse {a_lse.dtype} and "
            f"{b_lse.dtype}; expected one dtype for both sides; the result has it too; "
            "convert with astype"
        )
    return pairs
