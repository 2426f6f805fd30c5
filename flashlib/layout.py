"""View concatenated heads as an axis, and back, without a copy (chapters 2, 5).

A projection layer produces ``[seq, n_heads * head_dim]``; attention wants
``[seq, n_heads, head_dim]``. Both are the same memory: head ``h`` is the
stripe of columns ``h * head_dim`` to ``(h + 1) * head_dim``.
"""

import numpy as np

from flashlib.errors import ShapeError
from flashlib.validation import as_array, check_integer

__all__ = ["merge_heads", "repeat_kv", "split_heads"]


def split_heads(x: np.ndarray, n_heads: int) -> np.ndarray:
    """View concatenated heads as a separate axis.

    Parameters
    ----------
    x : ndarray
        Concatenated heads, ``[..., n_heads * head_dim]``.
    n_heads : int
        Number of heads, at least 1.

    Returns
    -------
    ndarray
        A view ``[..., n_heads, head_dim]`` of the same memory.

    Raises
    ------
    ShapeError
        If `x` has no axis, or its last axis is not a multiple of `n_heads`.
    ArgumentError
        If `n_heads` is not an integer of at least 1.

    Examples
    --------
    >>> x = np.arange(12.0).reshape(2, 6)
    >>> split_heads(x, 3)[1, 2]
    array([10., 11.])
    >>> np.shares_memory(split_heads(x, 3), x)
    True
    """
    x = _any_rank(x)
    n_heads = check_integer("n_heads", n_heads, 1, "a row holds at least one head")
    if x.ndim < 1:
        raise ShapeError(
            f"x has shape {x.shape}; expected [..., n_heads * head_dim]; "
            "a scalar has no heads"
        )
    width = x.shape[-1]
    if width % n_heads:
        raise ShapeError(
            f"x has width {width}; expected a multiple of n_heads = {n_heads}; "
            "every head owns a stripe of head_dim columns"
        )
    head_dim = width // n_heads
    strides = (*x.strides[:-1], head_dim * x.strides[-1], x.strides[-1])
    # subtle: reshape would silently copy some strided inputs; dividing one
    # axis in two is possible for any stride, so the view is made by hand.
    return np.lib.stride_tricks.as_strided(
        x,
        (*x.shape[:-1], n_heads, head_dim),
        strides,
        subok=True,
        writeable=x.flags.writeable,
    )


def merge_heads(x: np.ndarray) -> np.ndarray:
    """View the head axis and the width as one axis of concatenated heads.

    Parameters
    ----------
    x : ndarray
        Separate heads, ``[..., n_heads, head_dim]``, where head ``h + 1``
        starts in memory where head ``h`` ends (C order is enough).

    Returns
    -------
    ndarray
        A view ``[..., n_heads * head_dim]`` of the same memory.

    Raises
    ------
    ShapeError
        If `x` has fewer than two axes, or its heads do not lie side by side
        in memory, so that no view exists.

    Examples
    --------
    >>> x = np.arange(12.0).reshape(2, 3, 2)
    >>> merge_heads(x)[1]
    array([ 6.,  7.,  8.,  9., 10., 11.])
    >>> np.shares_memory(merge_heads(x), x)
    True
    """
    x = _any_rank(x)
    if x.ndim < 2:
        raise ShapeError(
            f"x has shape {x.shape}; expected [..., n_heads, head_dim]; the last two "
            "axes become one"
        )
    n_heads, head_dim = x.shape[-2:]
    head_step, step = x.strides[-2:]
    if n_heads > 1 and head_dim > 1 and head_step != head_dim * step:
        raise ShapeError(
            f"x has strides {x.strides}; expected heads side by side in memory; "
            "merge_heads makes a view and never copies; "
            "pass numpy.ascontiguousarray(x)"
        )
    # With one column per head the head step is the step between columns.
    merged = head_step if head_dim == 1 else step
    return np.lib.stride_tricks.as_strided(
        x,
        (*x.shape[:-2], n_heads * head_dim),
        (*x.strides[:-2], merged),
        subok=True,
        writeable=x.flags.writeable,
    )


def _any_rank(x: object) -> np.ndarray:
    """Return `x` as an array; a matrix, which always has two axes, as a plain one."""
    if not isinstance(x, np.ndarray):
        return as_array("x", x)
    return np.asarray(x) if isinstance(x, np.matrix) else x


def repeat_kv(x: np.ndarray, group: int) -> np.ndarray:
    """Copy every key/value head `group` times: ``a b`` becomes ``a a b b``.

    Grouped attention never needs this copy, query head ``h`` reads KV head
    ``h // group``; it states what grouping means, for tests and baselines.

    Parameters
    ----------
    x : ndarray
        Keys or values, ``[seq_k, n_kv_heads, head_dim]``.
    group : int
        Query heads per KV head, at least 1.

    Returns
    -------
    ndarray
        A copy ``[seq_k, n_kv_heads * group, head_dim]``.

    Raises
    ------
    ShapeError
        If `x` has fewer than two axes.
    ArgumentError
        If `group` is not an integer of at least 1.

    Examples
    --------
    >>> repeat_kv(np.array([[[1.0], [2.0]]]), 2).ravel()
    array([1., 1., 2., 2.])
    """
    x = np.asarray(x)
    if x.ndim < 2:
        raise ShapeError(
            f"x has shape {x.shape}; expected [..., n_kv_heads, head_dim]; the heads "
            "are repeated"
        )
    group = check_integer("group", group, 1, "a KV head serves at least one query head")
    return np.repeat(x, group, axis=-2)
