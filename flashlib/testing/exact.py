"""The right answer in float64, and the unit of an error (chapter 8)."""

import numpy as np

from flashlib.masks import as_dense
from flashlib.output import AttentionOutput
from flashlib.problem import attention_problem
from flashlib.reference import materialized_attention

__all__ = ["oracle", "unit"]


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


def _eps(dtype: np.dtype) -> float:
    # bfloat16 is not known to NumPy's finfo; it has 8 bits of precision.
    return 2.0**-7 if dtype.name == "bfloat16" else float(np.finfo(dtype).eps)
