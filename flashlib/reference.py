"""Compute attention the way it is written on paper (chapters 1, 2, 8).

The score matrix of every head is built on purpose, ``[seq_q, seq_k]``. In
float64 this is the oracle that every other implementation is measured
against; in float32 it is the baseline whose error the others may double.
"""

import numpy as np

from flashlib.masks import attended
from flashlib.online_softmax import weighted_sum
from flashlib.output import AttentionOutput, finite_or_zero
from flashlib.problem import Problem, attention_problem
from flashlib.scores import block_scores, head_copy

__all__ = ["materialize", "materialize_head", "materialized_attention"]


def materialized_attention(
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    *,
    causal: bool = False,
    window: int | tuple[int | None, int | None] | None = None,
    scale: float | None = None,
    softcap: float | None = None,
    mask: np.ndarray | None = None,
    bias: np.ndarray | None = None,
    sink: np.ndarray | None = None,
    dtype: np.typing.DTypeLike = None,
) -> AttentionOutput:
    """Compute ``softmax(scale * q @ k.T) @ v`` with the whole score matrix.

    Parameters
    ----------
    q, k, v, causal, window, scale, softcap, mask, bias, sink
        As in :func:`flashlib.flash_attention`.
    dtype : dtype, optional
        Convert q, k and v to this float type first; ``numpy.float64`` makes
        this function the oracle. Default: the type of q.

    Returns
    -------
    AttentionOutput
        ``out [seq_q, n_heads, head_dim_v]`` in `dtype`, and
        ``lse [seq_q, n_heads]`` in float32 (float64 for float64).

    Raises
    ------
    ShapeError, DTypeError, ArgumentError
        See :func:`flashlib.problem.attention_problem`.

    Examples
    --------
    Three equal scores, so every row is the plain mean of what it sees.

    >>> x = np.array([3.0, 6.0, 9.0]).reshape(3, 1, 1)
    >>> materialized_attention(0 * x, x, x, causal=True).out.ravel()
    array([3. , 4.5, 6. ])
    """
    problem, (q, k, v) = attention_problem(
        q,
        k,
        v,
        causal=causal,
        window=window,
        scale=scale,
        softcap=softcap,
        mask=mask,
        bias=bias,
        sink=sink,
        dtype=dtype,
    )
    result = materialize(problem, q, k, v)
    return result.rounded(problem.dtype)


def materialize(
    problem: Problem, q: np.ndarray, k: np.ndarray, v: np.ndarray
) -> AttentionOutput:
    """Run a validated problem on tensors of its work type, head by head."""
    rows = problem.seq_q, problem.n_heads
    result = AttentionOutput.empty(rows, problem.head_dim_v, problem.work)
    for h in range(problem.n_heads):
        materialize_head(problem, h, q, k, v, result)
    return result


def materialize_head(
    problem: Problem,
    h: int,
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    result: AttentionOutput,
) -> None:
    """Write head `h` into `result`; heads do not see each other."""
    kv_head = h // problem.group
    q, k, v = head_copy(q, h), head_copy(k, kv_head), head_copy(v, kv_head)
    rows, keys = range(problem.seq_q), range(problem.seq_k)
    sink = problem.sinks[h]
    with np.errstate(all="ignore"):
        s = block_scores(problem, h, q, k, rows, keys)
        visible = attended(problem, h, rows, keys)
        if visible is not None:
            s[~visible] = -np.inf
        m = s.max(axis=1, initial=sink)
        shift = finite_or_zero(m)
        p = np.exp(s - shift[:, None])
        l = p.sum(axis=1) + np.exp(sink - shift)
        attends = np.full(len(rows), len(keys) > 0)
        if visible is not None:
            attends = visible.any(axis=1)
        p /= np.where(attends, l, 1).astype(problem.work)[:, None]
        result.out[:, h], result.lse[:, h] = weighted_sum(p, v, visible), m + np.log(l)
