"""The right answer, pair by pair, in a way of its own (book).

The checks compare against this and not against `flashlib.materialized_attention`, so
that the oracle of the package can be checked like everything else. It decides for each
query and key whether they meet, in Python integers, and normalizes through the
logarithm of the sum instead of dividing by the sum.
"""

import numpy as np

from flashlib.output import AttentionOutput


def dense(q, k, v, *, dtype=np.float64, sink=None, **options) -> AttentionOutput:
    """Return out and lse, computed in `dtype`, for finite inputs.

    Parameters
    ----------
    q, k, v : ndarray
        As for `flashlib.flash_attention`; so are the options.
    dtype : dtype
        float64 for the right answer, float32 for what plain rounding costs.

    Examples
    --------
    >>> one = np.ones((3, 1, 1))
    >>> dense(one, one, np.arange(3.0).reshape(3, 1, 1), causal=True).out.ravel()
    array([0. , 0.5, 1. ])
    """
    group = q.shape[1] // k.shape[1]
    q, k, v = (np.asarray(x, dtype) for x in (q, k, v))
    out = np.zeros((*q.shape[:2], v.shape[2]), dtype)
    lse = np.full(q.shape[:2], -np.inf, dtype)
    for h in range(q.shape[1]):
        kv = h // group
        s = _scores(q[:, h], k[:, kv], h, **options)
        top = s.max(axis=1, initial=-np.inf if sink is None else sink[h])
        ground = np.where(np.isfinite(top), top, 0)[:, None]
        l = np.exp(s - ground).sum(axis=1)
        if sink is not None:
            l += np.exp(sink[h] - ground[:, 0])
        seen = l > 0
        lse[seen, h] = ground[seen, 0] + np.log(l[seen])
        out[seen, h] = np.exp(s[seen] - lse[seen, h, None]) @ v[:, kv]
    return AttentionOutput(out, lse)


def _scores(q, k, h, *, scale=None, softcap=None, bias=None, **seeing):
    """Return the scores of one head, -inf where a pair does not meet."""
    s = q @ k.T * q.dtype.type(q.shape[1] ** -0.5 if scale is None else scale)
    if softcap is not None:
        s = softcap * np.tanh(s / softcap)
    if bias is not None:
        s = s + _of_head(bias, h, s.shape)
    return np.where(_meet(h, s.shape, **seeing), s, -np.inf).astype(q.dtype)


def _meet(h, shape, *, causal=False, window=None, mask=None):
    """Say for each pair of a query row and a key whether they meet."""
    left, right = window if isinstance(window, tuple) else (None, None)
    if isinstance(window, int):
        left, right = window - 1, 0
    meet = np.ones(shape, bool)
    for i in range(shape[0]):
        for j in range(shape[1]):
            ahead = j - (i + shape[1] - shape[0])
            meet[i, j] = (
                not (causal and ahead > 0)
                and not (left is not None and ahead < -left)
                and not (right is not None and ahead > right)
            )
    return meet if mask is None else meet & _of_head(mask, h, shape)


def _of_head(array, h, shape):
    """Cut a mask or a bias down to one head."""
    array = np.asarray(array)
    if array.ndim == 3:
        array = array[h if array.shape[0] > 1 else 0]
    return np.broadcast_to(array, shape)
