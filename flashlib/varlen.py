"""Attend within every sequence of a packed batch, without padding (chapter 9)."""

from collections.abc import Sequence

import numpy as np

from flashlib.backends import Backend, get_backend
from flashlib.output import AttentionOutput
from flashlib.varlen_problem import varlen_problem

__all__ = ["flash_attention_varlen"]


def flash_attention_varlen(
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    *,
    cu_seqlens_q: np.ndarray | Sequence[int],
    cu_seqlens_k: np.ndarray | Sequence[int],
    causal: bool = False,
    window: int | tuple[int | None, int | None] | None = None,
    scale: float | None = None,
    softcap: float | None = None,
    sink: np.ndarray | None = None,
    backend: str | Backend = "auto",
) -> AttentionOutput:
    """Attend within each segment of rows that lie one after the other.

    Segment n owns the queries ``cu_seqlens_q[n]`` to ``cu_seqlens_q[n + 1]``
    and the keys between the same two entries of `cu_seqlens_k`. Each is a
    problem of its own: causal and window count from its own last key.

    Parameters
    ----------
    q : ndarray
        ``[total_q, n_heads, head_dim]``.
    k : ndarray
        ``[total_k, n_kv_heads, head_dim]``.
    v : ndarray
        ``[total_k, n_kv_heads, head_dim_v]``.
    cu_seqlens_q, cu_seqlens_k : array of int
        ``[segments + 1]``, starting at 0, never decreasing. Rows past the last
        entry belong to nobody: their out is 0, their lse -inf.
    causal, window, scale, softcap, sink, backend
        As in :func:`flashlib.flash_attention`.

    Returns
    -------
    AttentionOutput
        ``out [total_q, n_heads, head_dim_v]`` in the dtype of q, and
        ``lse [total_q, n_heads]`` in float32 (float64 for float64).

    Raises
    ------
    ShapeError, DTypeError, ArgumentError
        Before anything is computed.

    Examples
    --------
    Two segments: one query over two keys, one query over one key.

    >>> q, v = np.zeros((2, 1, 1)), np.array([1.0, 3.0, 7.0]).reshape(3, 1, 1)
    >>> flash_attention_varlen(
    ...     q, v, v, cu_seqlens_q=[0, 1, 2], cu_seqlens_k=[0, 2, 3]
    ... ).out.ravel()
    array([2., 7.])
    """
    problem, tensors, segments = varlen_problem(
        q,
        k,
        v,
        cu_seqlens_q=cu_seqlens_q,
        cu_seqlens_k=cu_seqlens_k,
        causal=causal,
        window=window,
        scale=scale,
        softcap=softcap,
        sink=sink,
    )
    result = get_backend(backend).varlen(problem, *tensors, segments)
    return result.rounded(problem.dtype)
