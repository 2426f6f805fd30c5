"""Compute attention without its score matrix (chapters 4, 5, 6)."""

import numpy as np

from flashlib.backends import Backend, get_backend
from flashlib.output import AttentionOutput
from flashlib.problem import attention_problem
from flashlib.validation import check_tile

__all__ = ["flash_attention"]


def flash_attention(
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
    backend: str | Backend = "auto",
    algorithm: str = "auto",
    tile: int | None = None,
) -> AttentionOutput:
    """Compute ``softmax(scale * q @ k.T) @ v``, a tile of keys at a time.

    Row i sits at position ``i + seq_k - seq_q``: the last query is at the last
    key. With ``causal=True`` it sees what lies at its position or before, for
    2 queries over 5 keys::

        1 1 1 1 0
        1 1 1 1 1

    A row that attends to nothing is 0, with lse ``-inf``. What a row does not
    attend is not read into it, NaN and infinities included.

    Parameters
    ----------
    q : ndarray
        Queries, ``[seq_q, n_heads, head_dim]``, float32, float64, float16 or
        bfloat16; any strides.
    k : ndarray
        Keys, ``[seq_k, n_kv_heads, head_dim]``, same dtype. Query head h reads
        KV head ``h // (n_heads // n_kv_heads)``.
    v : ndarray
        Values, ``[seq_k, n_kv_heads, head_dim_v]``, same dtype.
    causal : bool
        Hide the keys after the position of a row.
    window : int or (int or None, int or None), optional
        ``(left, right)``: a row at position p sees ``p - left <= j <= p +
        right``, None being no limit. An integer w means w tokens, the row's
        own key included: ``(w - 1, 0)``. With `causal`, right is 0.
    scale : float, optional
        Multiplies ``q . k``; default ``1 / sqrt(head_dim)``. May be negative.
    softcap : float, optional
        Replace the scaled score s by ``softcap * tanh(s / softcap)``.
    mask : ndarray of bool, optional
        True = attend; broadcasts to ``[n_heads, seq_q, seq_k]``.
    bias : ndarray of float, optional
        Added after scale and softcap; broadcasts like `mask`; ``-inf`` hides.
    sink : ndarray of float, optional
        One extra logit per query head, ``[n_heads]``, that only feeds the
        denominator; ``-inf`` for none.
    backend : str or Backend
        ``"auto"``, a name of :func:`flashlib.available_backends`, or an
        instance.
    algorithm : str
        ``"auto"`` (the backend's gate decides), ``"flash"`` or
        ``"materialized"``.
    tile : int, optional
        Keys per tile, 64 by default. Changes rounding, nothing else. Sums stay
        short on every backend: where a tile would leave too many of them, it is
        made longer, see ``shortest_tile`` of :mod:`flashlib.chains`. A long tile is
        taken as it is by `numpy`, in pieces of 64 keys by `blocked`, and in
        pieces of 64 or ``sqrt(seq_k)``, whatever is more, by `scalar`, `simd`
        and `pool`. `blas` has no tiles.

    Returns
    -------
    AttentionOutput
        ``out [seq_q, n_heads, head_dim_v]`` in the dtype of q, and
        ``lse [seq_q, n_heads]`` in float32 (float64 for float64).

    Raises
    ------
    ShapeError
        If a rank or size does not fit.
    DTypeError
        If q, k, v are not of one supported float type, a mask is not bool, or
        a bias or sink not float.
    ArgumentError
        If a value is out of range, or a backend or algorithm is not known.
    Refused
        If the backend does not run the explicit `algorithm`.

    Notes
    -----
    Source: Dao, Fu, Ermon, Rudra and Re 2022; the tile walk is chapter 5.

    Examples
    --------
    >>> q, k, v = np.zeros((2, 1, 1)), np.zeros((3, 1, 1)), np.arange(3.0)
    >>> flash_attention(q, k, v.reshape(3, 1, 1), causal=True).out.ravel()
    array([0.5, 1. ])
    """
    problem, tensors = attention_problem(
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
    )
    keys_per_tile = check_tile(tile)
    chosen = get_backend(backend)
    choice = chosen.choose(problem, algorithm)
    result = chosen.prefill(
        problem, *tensors, algorithm=choice.algorithm, tile=keys_per_tile
    )
    return result.rounded(problem.dtype)
