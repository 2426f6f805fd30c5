"""State one attention problem, and validate it once (chapters 2, 5, 6).

`Problem` says *what* is computed: sizes, the band of keys that every row may
see, scale, softcap, and the data masks. Backends and kernels say *how*, and
never validate again.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from flashlib.errors import DTypeError, ShapeError, shown
from flashlib.validation import (
    check_band,
    check_bias,
    check_mask,
    check_number,
    check_sink,
    check_tensor,
    is_float,
)

__all__ = ["Problem", "Tensors", "attention_problem", "in_work_type"]

Tensors = tuple[np.ndarray, np.ndarray, np.ndarray]

_QUERY = ("seq_q", "n_heads", "head_dim")
_KEY = ("seq_k", "n_kv_heads", "head_dim")
_VALUE = ("seq_k", "n_kv_heads", "head_dim_v")


@dataclass(frozen=True, eq=False, kw_only=True)
class Problem:
    """What one attention call computes; made by :func:`attention_problem`.

    Attributes
    ----------
    seq_q, seq_k : int
        Number of queries and of keys.
    n_heads, n_kv_heads : int
        Number of query heads and of key/value heads.
    head_dim, head_dim_v : int
        Width of q and k, and of v.
    dtype : numpy.dtype
        Type of q, k, v and of the result.
    work : numpy.dtype
        Type of the computation and of lse: float64 for float64, else float32.
    left, right : int or None
        The band: a row at position p sees keys ``p - left`` to ``p + right``,
        both included; None is no limit on that side.
    scale : float
        Multiplies ``q . k``.
    softcap : float or None
        Cap of the scaled score, ``softcap * tanh(s / softcap)``.
    mask : ndarray of bool or None
        True = attend; rank 3, every axis 1 or that of [n_heads, seq_q, seq_k].
    bias : ndarray or None
        Added to the score, in type `work`; shaped like `mask`; -inf hides.
    sink : ndarray or None
        One extra logit per query head in type `work`, ``[n_heads]``.
    """

    seq_q: int
    seq_k: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    head_dim_v: int
    dtype: np.dtype
    work: np.dtype
    left: int | None
    right: int | None
    scale: float
    softcap: float | None
    mask: np.ndarray | None
    bias: np.ndarray | None
    sink: np.ndarray | None

    @property
    def group(self) -> int:
        """Query heads per KV head; query head h reads KV head ``h // group``."""
        return self.n_heads // max(self.n_kv_heads, 1)

    @property
    def offset(self) -> int:
        """Position of row 0, so that the last query sits at the last key."""
        return self.seq_k - self.seq_q

    @property
    def reach(self) -> tuple[int, int]:
        """The band as two integers, no limit being further than any key is."""
        beyond = self.seq_q + self.seq_k
        left = beyond if self.left is None else min(self.left, beyond)
        right = beyond if self.right is None else min(self.right, beyond)
        return left, right

    def kv_range(self, i: int) -> tuple[int, int]:
        """Return the bounds ``lo, hi`` of the keys that row `i` may see.

        Row i sits at position ``p = i + offset`` and sees ``lo <= j < hi``,
        a range inside ``0 .. seq_k`` that may be empty. For 2 queries over
        5 keys, causal (row i, then keys 0 to 4)::

            0   1 1 1 1 0      kv_range(0) = (0, 4)
            1   1 1 1 1 1      kv_range(1) = (0, 5)
        """
        left, right = self.reach
        position = i + self.offset
        hi = min(max(position + right + 1, 0), self.seq_k)
        lo = min(max(position - left, 0), hi)
        return lo, hi

    @property
    def sinks(self) -> np.ndarray:
        """The extra logit of every head, ``-inf`` where there is none."""
        if self.sink is None:
            return np.full(self.n_heads, -np.inf, self.work)
        return self.sink

    def over_keys(self, seq_k: int) -> "Problem":
        """Return the same problem over `seq_k` keys (a cache filled so far)."""
        return replace(self, seq_k=seq_k)


def attention_problem(
    q: object,
    k: object,
    v: object,
    *,
    causal: bool = False,
    window: int | Sequence[int | None] | None = None,
    scale: float | None = None,
    softcap: float | None = None,
    mask: np.ndarray | None = None,
    bias: np.ndarray | None = None,
    sink: np.ndarray | None = None,
    dtype: np.typing.DTypeLike = None,
) -> tuple[Problem, Tensors]:
    """Validate one attention call and state it as a :class:`Problem`.

    Parameters
    ----------
    q, k, v : array_like
        ``[seq_q, n_heads, head_dim]``, ``[seq_k, n_kv_heads, head_dim]``,
        ``[seq_k, n_kv_heads, head_dim_v]``, of one float dtype.
    causal, window, scale, softcap, mask, bias, sink
        As in :func:`flashlib.flash_attention`.
    dtype : dtype, optional
        Convert q, k and v to this float type first.

    Returns
    -------
    problem : Problem
    tensors : tuple of ndarray
        q, k and v in the type ``problem.work``, in any memory order.

    Raises
    ------
    ShapeError, DTypeError, ArgumentError
        Before anything is computed; the message names the rule.
    """
    tensors = (
        check_tensor("q", q, _QUERY),
        check_tensor("k", k, _KEY),
        check_tensor("v", v, _VALUE),
    )
    result = _one_dtype(*tensors, dtype)
    work = np.dtype(np.float64 if result == np.float64 else np.float32)
    sizes = _sizes(*tensors)
    left, right = check_band(causal, window)
    full = (sizes["n_heads"], sizes["seq_q"], sizes["seq_k"])
    if scale is None:
        scale = 1 / math.sqrt(sizes["head_dim"] or 1)
    if softcap is not None:
        softcap = check_number("softcap", softcap, work, positive=True)
    problem = Problem(
        **sizes,
        dtype=result,
        work=work,
        left=left,
        right=right,
        scale=check_number("scale", scale, work, positive=False),
        softcap=softcap,
        mask=check_mask(mask, full),
        bias=check_bias(bias, full, work),
        sink=check_sink(sink, sizes["n_heads"], work),
    )
    return problem, in_work_type(problem, tensors)


def in_work_type(problem: Problem, tensors: Tensors) -> Tensors:
    """Return q, k and v in the type ``problem.work``, rounded to its dtype first."""
    if problem.dtype == problem.work == tensors[0].dtype:
        return tensors
    with np.errstate(all="ignore"):
        return tuple(
            tensor.astype(problem.dtype, copy=False).astype(problem.work, copy=False)
            for tensor in tensors
        )


def _one_dtype(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, dtype: np.typing.DTypeLike
) -> np.dtype:
    if not q.dtype == k.dtype == v.dtype:
        raise DTypeError(
            f"q, k, v have dtypes {q.dtype}, {k.dtype}, {v.dtype}; expected one "
            "dtype for all three; convert with astype"
        )
    if dtype is None:
        return q.dtype
    try:
        wanted = np.dtype(dtype)
    except TypeError:
        wanted = None
    if wanted is None or not is_float(wanted):
        raise DTypeError(
            f"dtype has {shown(dtype)}; expected float32, float64, float16 or "
            "bfloat16; q, k and v are converted to it"
        )
    return wanted


def _sizes(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> dict[str, int]:
    seq_q, n_heads, head_dim = q.shape
    seq_k, n_kv_heads, key_dim = k.shape
    if v.shape[0] != seq_k:
        raise ShapeError(
            f"k and v have {seq_k} and {v.shape[0]} tokens; expected equal seq_k; "
            "every key has one value"
        )
    if v.shape[1] != n_kv_heads:
        raise ShapeError(
            f"k and v have {n_kv_heads} and {v.shape[1]} heads; expected equal "
            "n_kv_heads; every key has one value"
        )
    if key_dim != head_dim:
        raise ShapeError(
            f"q and k have head_dim {head_dim} and {key_dim}; expected equal "
            "head_dim; a score is their dot product"
        )
    if n_heads % n_kv_heads if n_kv_heads else n_heads:
        raise ShapeError(
            f"q has {n_heads} heads; expected a multiple of n_kv_heads = {n_kv_heads}; "
            "every KV head serves a whole group of query heads"
        )
    return {
        "seq_q": seq_q,
        "seq_k": seq_k,
        "n_heads": n_heads,
        "n_kv_heads": n_kv_heads,
        "head_dim": head_dim,
        "head_dim_v": v.shape[2],
    }
