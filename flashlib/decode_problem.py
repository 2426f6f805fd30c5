"""State the problem of new tokens over a cache, in one piece or in pages (chapter 14).

Each function validates one call in full, before anything is computed, and
returns what a backend needs: the :class:`~flashlib.problem.Problem` of one
sequence, the tensors in the work type, lengths and tables as int64.
"""

from typing import NamedTuple

import numpy as np

from flashlib.chains import CHAIN
from flashlib.errors import ArgumentError, ShapeError
from flashlib.integer_arrays import check_integers
from flashlib.problem import Problem, Tensors, attention_problem, in_work_type
from flashlib.validation import check_integer, check_tensor

__all__ = ["MOST_SPLITS", "Decode", "decode_problem", "paged_problem"]

# Parts of a cache at most: their sums are one chain of additions.
MOST_SPLITS = CHAIN
_ZERO = bytes(8)


class Decode(NamedTuple):
    """A validated decode call.

    Attributes
    ----------
    problem : Problem
        Of one sequence: `seq_q` new tokens, `seq_k` = the capacity.
    tensors : tuple of ndarray
        q, and the caches or pages of K and V.
    table : ndarray of int64 or None
        ``[batch, max_blocks]``; entries that no live token needs are 0. None
        for a contiguous cache.
    lengths : ndarray of int64
        Live keys, ``[batch]``.
    num_splits : int or None
    """

    problem: Problem
    tensors: Tensors
    table: np.ndarray | None
    lengths: np.ndarray
    num_splits: int | None


def decode_problem(
    q: object,
    k_cache: object,
    v_cache: object,
    *,
    cache_seqlens: object,
    num_splits: object,
    **options,
) -> Decode:
    """Validate one call of :func:`flashlib.flash_attention_decode`."""
    names = ("k_cache", "v_cache")
    tensors = _tensors(q, k_cache, v_cache, names, "batch", "capacity")
    q, k_cache, _ = tensors
    if len(k_cache) != len(q):
        raise ShapeError(
            f"q and k_cache have {len(q)} and {len(k_cache)} sequences; expected "
            "equal batch; every sequence has a cache of its own"
        )
    problem, tensors = _problem(tensors, k_cache.shape[1], options)
    lengths = _lengths(cache_seqlens, q.shape, k_cache.shape[1], "capacity")
    return Decode(problem, tensors, None, lengths, _num_splits(num_splits))


def paged_problem(
    q: object,
    k_pages: object,
    v_pages: object,
    *,
    block_table: object,
    cache_seqlens: object,
    num_splits: object,
    **options,
) -> Decode:
    """Validate one call of :func:`flashlib.flash_attention_paged`."""
    names = ("k_pages", "v_pages")
    tensors = _tensors(q, k_pages, v_pages, names, "num_blocks", "block_len")
    q, k_pages, _ = tensors
    num_blocks, block_len = k_pages.shape[:2]
    if block_len < 1:
        raise ShapeError(
            f"k_pages has shape {k_pages.shape}; expected block_len >= 1; a page "
            "holds at least one token"
        )
    table = check_integers("block_table", block_table, ("batch", "max_blocks"))
    if len(table) != len(q):
        raise ShapeError(
            f"block_table has {len(table)} rows; expected batch = {len(q)}; every "
            "sequence has a row of pages"
        )
    capacity = table.shape[1] * block_len
    problem, tensors = _problem(tensors, capacity, options)
    lengths = _lengths(cache_seqlens, q.shape, capacity, "max_blocks * block_len")
    table = _live_table(table, lengths, num_blocks, block_len)
    return Decode(problem, tensors, table, lengths, _num_splits(num_splits))


def _tensors(
    q: object,
    k: object,
    v: object,
    names: tuple[str, str],
    outer: str,
    inner: str,
) -> Tensors:
    axes = (outer, inner, "n_kv_heads")
    q = check_tensor("q", q, ("batch", "seq_new", "n_heads", "head_dim"))
    k = check_tensor(names[0], k, (*axes, "head_dim"))
    v = check_tensor(names[1], v, (*axes, "head_dim_v"))
    if k.shape[:2] != v.shape[:2]:
        raise ShapeError(
            f"{names[0]} and {names[1]} have shapes {k.shape} and {v.shape}; expected "
            f"equal {outer} and {inner}; every key has one value"
        )
    return q, k, v


def _problem(tensors: Tensors, capacity: int, options: dict) -> tuple[Problem, Tensors]:
    """State the problem of one sequence, from tensors without its memory."""
    q, k, v = tensors
    problem, _ = attention_problem(
        _blank(q, q.shape[1]), _blank(k, capacity), _blank(v, capacity), **options
    )
    return problem, in_work_type(problem, tensors)


def _blank(like: np.ndarray, length: int) -> np.ndarray:
    """Return one zero seen as a whole sequence, the cheapest way there is."""
    shape = (length, *like.shape[2:])
    return np.ndarray(shape, like.dtype, _ZERO, strides=(0, 0, 0))


def _lengths(
    value: object, q_shape: tuple[int, ...], capacity: int, limit: str
) -> np.ndarray:
    lengths = check_integers("cache_seqlens", value, ("batch",))
    batch, seq_new = q_shape[:2]
    if len(lengths) != batch:
        raise ShapeError(
            f"cache_seqlens has {len(lengths)} entries; expected batch = {batch}; "
            "every sequence has a length of its own"
        )
    wrong = (lengths < 0) | (lengths > capacity)
    if wrong.any():
        b = int(wrong.argmax())
        raise ArgumentError(
            f"cache_seqlens[{b}] has {lengths[b]}; expected 0 to {capacity}; live "
            f"keys fit into {limit}"
        )
    short = lengths < seq_new
    if short.any():
        b = int(short.argmax())
        raise ArgumentError(
            f"cache_seqlens[{b}] has {lengths[b]}; expected at least seq_new = "
            f"{seq_new}; the new tokens count as live; append them first"
        )
    return lengths.astype(np.int64)


def _live_table(
    table: np.ndarray, lengths: np.ndarray, num_blocks: int, block_len: int
) -> np.ndarray:
    """Return the table with 0 where no live token needs a page, or raise."""
    needed = np.arange(table.shape[1]) < -(-lengths // block_len)[:, None]
    wrong = needed & ((table < 0) | (table >= num_blocks))
    if wrong.any():
        b, page = (int(x[0]) for x in np.nonzero(wrong))
        raise ArgumentError(
            f"block_table[{b}, {page}] has {table[b, page]}; expected 0 to "
            f"{num_blocks - 1}; the {lengths[b]} live tokens of sequence {b} need it"
        )
    return np.where(needed, table, 0).astype(np.int64)


def _num_splits(value: object) -> int | None:
    if value is None:
        return None
    wanted = check_integer("num_splits", value, 1, "the keys are cut into that many")
    return min(wanted, MOST_SPLITS)
