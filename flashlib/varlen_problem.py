"""State the problem of sequences that are packed one after the other (chapter 9)."""

from typing import NamedTuple

import numpy as np

from flashlib.errors import ArgumentError, ShapeError
from flashlib.integer_arrays import check_integers
from flashlib.problem import Problem, Tensors, attention_problem

__all__ = ["Varlen", "varlen_problem"]


class Varlen(NamedTuple):
    """A validated call over packed sequences.

    Attributes
    ----------
    problem : Problem
        Of all rows together; its band counts from the end of each segment.
    tensors : tuple of ndarray
    segments : ndarray of int64
        ``[n, 4]``: first query, queries, first key, keys.
    """

    problem: Problem
    tensors: Tensors
    segments: np.ndarray


def varlen_problem(
    q: object,
    k: object,
    v: object,
    *,
    cu_seqlens_q: object,
    cu_seqlens_k: object,
    **options,
) -> Varlen:
    """Validate one call of :func:`flashlib.flash_attention_varlen` in full."""
    problem, tensors = attention_problem(q, k, v, **options)
    bounds_q = _bounds("cu_seqlens_q", cu_seqlens_q, problem.seq_q, "total_q")
    bounds_k = _bounds("cu_seqlens_k", cu_seqlens_k, problem.seq_k, "total_k")
    if len(bounds_q) != len(bounds_k):
        raise ShapeError(
            f"cu_seqlens_q and cu_seqlens_k have {len(bounds_q)} and {len(bounds_k)} "
            "entries; expected equal sizes, segments + 1; every segment has queries "
            "and keys"
        )
    columns = (bounds_q[:-1], np.diff(bounds_q), bounds_k[:-1], np.diff(bounds_k))
    return Varlen(problem, tensors, np.stack(columns, axis=1))


def _bounds(name: str, value: object, total: int, what: str) -> np.ndarray:
    bounds = check_integers(name, value, ("segments + 1",))
    if len(bounds) < 1:
        raise ShapeError(
            f"{name} has no entries; expected segments + 1; a batch without segments "
            "is [0]"
        )
    if bounds[0] != 0:
        raise ArgumentError(
            f"{name}[0] has {bounds[0]}; expected 0; the first segment starts at row 0"
        )
    falls = bounds[1:] < bounds[:-1]
    if falls.any():
        n = int(falls.argmax()) + 1
        raise ArgumentError(
            f"{name}[{n}] has {bounds[n]}; expected at least {bounds[n - 1]}; bounds "
            "of segments never decrease"
        )
    if bounds[-1] > total:
        raise ArgumentError(
            f"{name}[-1] has {bounds[-1]}; expected at most {what} = {total}; the last "
            "segment ends within the rows"
        )
    return bounds.astype(np.int64)
