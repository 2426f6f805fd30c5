"""Attend the newest tokens to a cache of all earlier ones (chapter 14)."""

from collections.abc import Sequence

import numpy as np

from flashlib.backends import Backend, get_backend
from flashlib.decode_problem import decode_problem, paged_problem
from flashlib.output import AttentionOutput

__all__ = ["flash_attention_decode", "flash_attention_paged"]


def flash_attention_decode(
    q: np.ndarray,
    k_cache: np.ndarray,
    v_cache: np.ndarray,
    *,
    cache_seqlens: np.ndarray | Sequence[int],
    causal: bool = True,
    window: int | tuple[int | None, int | None] | None = None,
    scale: float | None = None,
    softcap: float | None = None,
    sink: np.ndarray | None = None,
    num_splits: int | None = None,
    backend: str | Backend = "auto",
) -> AttentionOutput:
    """Attend the newest tokens of every sequence to its contiguous cache.

    Query row i of a sequence with L live keys sits at position
    ``L - seq_new + i``. Slots from L on are never read.

    Parameters
    ----------
    q : ndarray
        ``[batch, seq_new, n_heads, head_dim]``; seq_new is 1, or more where
        several tokens are guessed at once.
    k_cache : ndarray
        ``[batch, capacity, n_kv_heads, head_dim]``.
    v_cache : ndarray
        ``[batch, capacity, n_kv_heads, head_dim_v]``.
    cache_seqlens : array of int
        Live keys per sequence, ``[batch]``, the new ones included.
    causal, window, scale, softcap, sink
        As in :func:`flashlib.flash_attention`.
    num_splits : int, optional
        Cut the keys into as many parts, merged at the end. Changes rounding,
        nothing else. A number above 64 is taken as 64 on every backend; there are
        no more parts than keys, and a part of more than 4,096 keys is cut again.
        `blas` has all scores and makes no parts. The default depends on the
        length of the sequence alone.
    backend : str or Backend
        As in :func:`flashlib.flash_attention`.

    Returns
    -------
    AttentionOutput
        ``out [batch, seq_new, n_heads, head_dim_v]`` in the dtype of q, and
        ``lse [batch, seq_new, n_heads]`` in float32 (float64 for float64).

    Raises
    ------
    ShapeError, DTypeError, ArgumentError
        Before anything is computed: sizes that do not fit, a length that is
        negative, beyond the capacity, or below seq_new.

    Examples
    --------
    Two live keys; the third slot has never been written.

    >>> cache = np.array([1.0, 3.0, np.nan]).reshape(1, 3, 1, 1)
    >>> q = np.zeros((1, 1, 1, 1))
    >>> flash_attention_decode(q, cache, cache, cache_seqlens=[2]).out.item()
    2.0
    """
    problem, tensors, _, lengths, splits = decode_problem(
        q,
        k_cache,
        v_cache,
        cache_seqlens=cache_seqlens,
        num_splits=num_splits,
        causal=causal,
        window=window,
        scale=scale,
        softcap=softcap,
        sink=sink,
    )
    result = get_backend(backend).decode(problem, *tensors, lengths, splits)
    return result.rounded(problem.dtype)


def flash_attention_paged(
    q: np.ndarray,
    k_pages: np.ndarray,
    v_pages: np.ndarray,
    *,
    block_table: np.ndarray,
    cache_seqlens: np.ndarray | Sequence[int],
    causal: bool = True,
    window: int | tuple[int | None, int | None] | None = None,
    scale: float | None = None,
    softcap: float | None = None,
    sink: np.ndarray | None = None,
    num_splits: int | None = None,
    backend: str | Backend = "auto",
) -> AttentionOutput:
    """Attend the newest tokens of every sequence to a cache in pages.

    Token t of sequence b lies in slot ``t % block_len`` of page
    ``block_table[b, t // block_len]``. The result does not depend on where the
    pages lie, and equals that of a contiguous cache to the bit.

    Parameters
    ----------
    q : ndarray
        ``[batch, seq_new, n_heads, head_dim]``.
    k_pages : ndarray
        ``[num_blocks, block_len, n_kv_heads, head_dim]``.
    v_pages : ndarray
        ``[num_blocks, block_len, n_kv_heads, head_dim_v]``.
    block_table : ndarray of any integer type
        ``[batch, max_blocks]``. Entries that no live token needs may hold
        anything.
    cache_seqlens, causal, window, scale, softcap, sink, num_splits, backend
        As in :func:`flash_attention_decode`.

    Returns
    -------
    AttentionOutput
        As from :func:`flash_attention_decode`.

    Raises
    ------
    ShapeError, DTypeError, ArgumentError
        Before a page is read; also for a table entry that a live token needs
        and that is no page.

    Examples
    --------
    >>> pages = np.array([10.0, 20.0, 30.0]).reshape(3, 1, 1, 1)
    >>> q = np.zeros((1, 1, 1, 1))
    >>> flash_attention_paged(
    ...     q, 0 * pages, pages, block_table=[[2, 0]], cache_seqlens=[2]
    ... ).out.item()
    20.0
    """
    problem, tensors, table, lengths, splits = paged_problem(
        q,
        k_pages,
        v_pages,
        block_table=block_table,
        cache_seqlens=cache_seqlens,
        num_splits=num_splits,
        causal=causal,
        window=window,
        scale=scale,
        softcap=softcap,
        sink=sink,
    )
    chosen = get_backend(backend)
    result = chosen.paged(problem, *tensors, table, lengths, splits)
    return result.rounded(problem.dtype)
