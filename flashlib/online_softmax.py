"""Keep a softmax in three numbers that can be merged (chapters 3, 4).

A softmax-weighted mean over any set of keys is held by a state
``(m, l, acc)``: the largest score so far, the sum of ``exp(s - m)`` so far,
and the same sum weighted with the values. Two states over disjoint sets merge
into the state of the union, in any order, so tiles, splits, sinks, cores and
machines all use one algebra. Its identity is ``(-inf, 0, 0)``.

Two traps are part of the algebra. ``-inf - (-inf)`` is NaN, so an empty state
is measured against 0 instead of its own maximum. And ``0 * NaN`` is NaN, so a
value that is hidden is never multiplied, not even by zero.

Source: Milakov and Gimelshein 2018 (the running maximum and denominator),
Rabe and Staats 2021 and Dao et al. 2022 (the running numerator).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from flashlib.output import finite_or_zero
from flashlib.products import product
from flashlib.validation import check_integer

__all__ = ["OnlineSoftmax", "Step", "walk", "weighted_sum"]


@dataclass(frozen=True, eq=False)
class OnlineSoftmax:
    """An immutable state of the online softmax, for one row or many.

    Attributes
    ----------
    m : ndarray
        Running maximum of the scores, ``[...]``.
    l : ndarray
        Running denominator relative to `m`, ``[...]``.
    acc : ndarray
        Running numerator relative to `m`, ``[..., head_dim]``.

    Examples
    --------
    >>> values = np.array([[10.0], [20.0], [40.0]])
    >>> state = OnlineSoftmax.identity(1)
    >>> state = state.update(np.array([0.0, 0.0]), values[:2])
    >>> state = state.update(np.array([np.log(2.0)]), values[2:])
    >>> state.out
    array([27.5])
    """

    m: np.ndarray
    l: np.ndarray
    acc: np.ndarray

    @classmethod
    def identity(
        cls,
        head_dim: int,
        dtype: np.typing.DTypeLike = np.float64,
        rows: tuple[int, ...] = (),
    ) -> "OnlineSoftmax":
        """Return the state of no keys at all, ``(-inf, 0, 0)``.

        Parameters
        ----------
        head_dim : int
            Width of a value.
        dtype : dtype
            Float type of the state; updates keep it.
        rows : tuple of int
            Leading shape: ``()`` for one row, ``(n,)`` for n rows at once.
        """
        return cls(
            np.full(rows, -np.inf, dtype),
            np.zeros(rows, dtype),
            np.zeros((*rows, head_dim), dtype),
        )

    @classmethod
    def start(
        cls,
        head_dim: int,
        dtype: np.typing.DTypeLike,
        rows: tuple[int, ...],
        sink: float = -np.inf,
    ) -> "OnlineSoftmax":
        """Return the state before the first key: ``(sink, 1, 0)``, or no keys.

        A sink is one more logit without a value. ``-inf`` is no sink.
        """
        empty = cls.identity(head_dim, dtype, rows)
        if sink == -np.inf:
            return empty
        return cls(np.full(rows, sink, dtype), np.ones(rows, dtype), empty.acc)

    def update(
        self,
        scores: np.ndarray,
        values: np.ndarray,
        attended: np.ndarray | None = None,
    ) -> "OnlineSoftmax":
        """Return the state after one more tile of keys.

        Parameters
        ----------
        scores : ndarray
            ``[..., n]``.
        values : ndarray
            ``[n, head_dim]``.
        attended : ndarray of bool, optional
            ``[..., n]``, True where the key counts. A hidden key adds nothing,
            whatever its score and its value hold.
        """
        s = scores if attended is None else np.where(attended, scores, -np.inf)
        m = np.maximum(self.m, s.max(axis=-1, initial=-np.inf))
        with np.errstate(all="ignore"):
            corr = self.correction(m)
            p = np.exp(s - finite_or_zero(m)[..., None])
            l = self.l * corr + p.sum(axis=-1)
            seen = self.acc * corr[..., None]
            return OnlineSoftmax(m, l, seen + weighted_sum(p, values, attended))

    def merge(self, other: "OnlineSoftmax") -> "OnlineSoftmax":
        """Return the state of the union of two disjoint sets of keys."""
        m = np.maximum(self.m, other.m)
        with np.errstate(all="ignore"):
            mine, theirs = self.correction(m), other.correction(m)
            l = self.l * mine + other.l * theirs
            acc = self.acc * mine[..., None] + other.acc * theirs[..., None]
        return OnlineSoftmax(m, l, acc)

    def correction(self, m: np.ndarray) -> np.ndarray:
        """Return ``exp(self.m - m)``, the factor that re-bases this state on `m`.

        At most 1 as long as ``m >= self.m``; 0 for an empty state, and that
        also when `m` is ``-inf`` too.
        """
        with np.errstate(all="ignore"):
            return np.exp(self.m - finite_or_zero(m))

    @property
    def out(self) -> np.ndarray:
        """``acc / l``, the weighted mean; 0 for an empty state."""
        empty = np.asarray(self.l == 0)[..., None]
        with np.errstate(all="ignore"):
            return np.where(empty, self.acc, self.acc / self.l[..., None])

    @property
    def lse(self) -> np.ndarray:
        """``m + ln(l)``; ``-inf`` for an empty state."""
        with np.errstate(all="ignore"):
            return np.where(self.l == 0, self.l.dtype.type(-np.inf), self._log_sum())

    def _log_sum(self) -> np.ndarray:
        return self.m + np.log(self.l)


class Step(NamedTuple):
    """One step of :func:`walk`: a tile, and the state around it.

    Attributes
    ----------
    start, stop : int
        The keys of the tile, ``start <= j < stop``.
    m_tile : numpy.floating
        Largest score of the tile.
    rescaled : bool
        Whether the tile raised the maximum of a state that was not empty.
    corr : numpy.floating
        ``exp(before.m - after.m)``: 1 without a rescale, 0 for the first tile.
    p : ndarray
        ``exp(scores - after.m)``, ``[stop - start]``.
    before, after : OnlineSoftmax
        The state before and after the tile.
    """

    start: int
    stop: int
    m_tile: np.floating
    rescaled: bool
    corr: np.floating
    p: np.ndarray
    before: OnlineSoftmax
    after: OnlineSoftmax


def walk(scores: np.ndarray, values: np.ndarray, tile: int) -> Iterator[Step]:
    """Walk one row tile by tile and yield every state on the way.

    Parameters
    ----------
    scores : ndarray
        The scores of one row, ``[n]``.
    values : ndarray
        The values, ``[n, head_dim]``.
    tile : int
        Keys per step, at least 1.

    Yields
    ------
    Step
        One per tile; the last one holds the finished state.

    Examples
    --------
    The running example of the book, tiles of two.

    >>> scores = np.array([1.0, 3.0, 2.0, 5.0, 4.0, 0.0])
    >>> steps = list(walk(scores, np.ones((6, 2)), tile=2))
    >>> [float(step.after.m) for step in steps]
    [3.0, 5.0, 5.0]
    >>> [step.rescaled for step in steps]
    [False, True, False]
    """
    tile = check_integer("tile", tile, 1, "a tile holds at least one key")
    state = OnlineSoftmax.identity(values.shape[1], scores.dtype)
    for start in range(0, len(scores), tile):
        s = scores[start : start + tile]
        after = state.update(s, values[start : start + tile])
        with np.errstate(all="ignore"):
            p = np.exp(s - finite_or_zero(after.m))
        yield Step(
            start=start,
            stop=start + len(s),
            m_tile=s.max(),
            rescaled=bool(state.l > 0 and after.m > state.m),
            corr=state.correction(after.m),
            p=p,
            before=state,
            after=after,
        )
        state = after


def weighted_sum(
    p: np.ndarray, values: np.ndarray, attended: np.ndarray | None = None
) -> np.ndarray:
    """Return ``p @ values`` without reading a hidden value.

    Parameters
    ----------
    p : ndarray
        Weights, ``[..., n]``, 0 where a key is hidden.
    values : ndarray
        ``[n, head_dim]``. Rows that nobody attends may hold anything.
    attended : ndarray of bool, optional
        ``[..., n]``. Where it is False a NaN or an infinity stays out of the
        sum; where it is True it shows, even under a weight of 0.

    Returns
    -------
    ndarray
        ``[..., head_dim]``.
    """
    rows = p.reshape(math.prod(p.shape[:-1]), p.shape[-1])
    finite = np.isfinite(values)
    shape = (*p.shape[:-1], values.shape[1])
    if finite.all():
        return product(rows, values).reshape(shape)
    clean = np.where(finite, values, values.dtype.type(0))
    total = product(rows, clean).reshape(shape)
    for j in np.flatnonzero(~finite.all(axis=1)):
        # subtle: the product is formed only to be selected from; a row that
        # does not attend key j keeps the bits it has.
        reads = True if attended is None else attended[..., j, None]
        with np.errstate(invalid="ignore"):
            raised = total + p[..., j, None] * values[j]
        total = np.where(reads & ~finite[j], raised, total)
    return total
