"""Say who attends to whom, as bounds where possible, else as data (chapter 6).

The predicates return small boolean matrices, ``[seq_q, seq_k]``, True =
attend, to print, to draw and to pass as `mask`. A problem needs none of them
for its band: :meth:`~flashlib.problem.Problem.kv_range` gives bounds, and
:func:`attended` builds data only for the cells of one block, and only if some
cell of it is hidden.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from flashlib.errors import ShapeError
from flashlib.problem import Problem
from flashlib.validation import check_band

__all__ = [
    "Tile",
    "as_dense",
    "attended",
    "band_mask",
    "causal_mask",
    "document_mask",
    "key_tiles",
    "tiles",
    "window_mask",
]


def causal_mask(seq_q: int, seq_k: int) -> np.ndarray:
    """Return the causal mask, aligned at the bottom right.

    Row i sees keys ``j <= i + seq_k - seq_q``, so the last query sees the
    last key.

    Examples
    --------
    >>> causal_mask(2, 4).astype(int)
    array([[1, 1, 1, 0],
           [1, 1, 1, 1]])
    """
    return band_mask(seq_q, seq_k, None, 0)


def window_mask(
    seq_q: int, seq_k: int, window: int | tuple[int | None, int | None]
) -> np.ndarray:
    """Return the mask of a sliding window.

    An integer counts the row's own key and looks back; a pair ``(left, right)``
    counts the keys to the left and to the right of the row's own key, None being
    no limit.

    Raises
    ------
    ArgumentError
        If `window` is no integer of at least 1 and no pair of limits.

    Examples
    --------
    >>> window_mask(3, 3, 2).astype(int)
    array([[1, 0, 0],
           [1, 1, 0],
           [0, 1, 1]])
    >>> window_mask(3, 3, (0, None)).astype(int)
    array([[1, 1, 1],
           [0, 1, 1],
           [0, 0, 1]])
    """
    return band_mask(seq_q, seq_k, *check_band(False, window))


def band_mask(
    seq_q: int, seq_k: int, left: int | None, right: int | None
) -> np.ndarray:
    """Return the mask of keys ``p - left`` to ``p + right`` around position p."""
    distance = np.arange(seq_k) - (np.arange(seq_q) + seq_k - seq_q)[:, None]
    mask = np.ones((seq_q, seq_k), bool)
    if left is not None:
        mask &= distance >= -left
    if right is not None:
        mask &= distance <= right
    return mask


def document_mask(documents: np.ndarray) -> np.ndarray:
    """Return the mask of a packed row of documents: attend within your own.

    Parameters
    ----------
    documents : ndarray
        Document number of every token, ``[seq]``.

    Raises
    ------
    ShapeError
        If `documents` does not have one axis.

    Examples
    --------
    >>> document_mask(np.array([0, 0, 1])).astype(int)
    array([[1, 1, 0],
           [1, 1, 0],
           [0, 0, 1]])
    """
    documents = np.asarray(documents)
    if documents.ndim != 1:
        raise ShapeError(
            f"documents has shape {documents.shape}; expected [seq]; every token has "
            "the number of its document"
        )
    return documents[:, None] == documents


def attended(problem: Problem, h: int, rows: range, keys: range) -> np.ndarray | None:
    """Return who attends inside one block of one head, or None for everybody.

    Parameters
    ----------
    problem : Problem
        Band, mask and bias; a bias of ``-inf`` hides its cell.
    h : int
        Query head.
    rows, keys : range
        The block, contiguous ranges.

    Returns
    -------
    ndarray of bool or None
        ``[len(rows), len(keys)]``.

    Examples
    --------
    Rows 2 and 3 of a causal square of 4, over its two halves of keys.

    >>> from flashlib.problem import attention_problem
    >>> x = np.zeros((4, 1, 1))
    >>> problem, _ = attention_problem(x, x, x, causal=True)
    >>> attended(problem, 0, range(2, 4), range(0, 2)) is None
    True
    >>> attended(problem, 0, range(2, 4), range(2, 4)).astype(int)
    array([[1, 0],
           [1, 1]])
    """
    cells = _band_cells(problem, rows, keys)
    for data in (problem.mask, problem.bias):
        if data is None:
            continue
        block = block_of(data, h, rows, keys)
        visible = block if data is problem.mask else block != -np.inf
        cells = visible if cells is None else cells & visible
    if cells is None or cells.all():
        return None
    return np.broadcast_to(cells, (len(rows), len(keys)))


def block_of(data: np.ndarray, h: int, rows: range, keys: range) -> np.ndarray:
    """Cut one block out of a mask or bias whose axes may have size 1.

    Examples
    --------
    One mask for all heads and rows: an axis of size 1 stays as it is.

    >>> mask = np.array([[[True, True, False, True]]])
    >>> block_of(mask, 5, range(8, 9), range(1, 3)).astype(int)
    array([[1, 0]])
    """
    heads, seq_q, seq_k = data.shape
    return data[
        h if heads > 1 else 0,
        slice(rows.start, rows.stop) if seq_q > 1 else slice(None),
        slice(keys.start, keys.stop) if seq_k > 1 else slice(None),
    ]


def as_dense(problem: Problem) -> np.ndarray:
    """Return the whole mask of a problem, ``[n_heads, seq_q, seq_k]``.

    Quadratic on purpose: for tests, pictures and oracles.
    """
    rows, keys = range(problem.seq_q), range(problem.seq_k)
    dense = np.ones((problem.n_heads, problem.seq_q, problem.seq_k), bool)
    for h in range(problem.n_heads):
        cells = attended(problem, h, rows, keys)
        if cells is not None:
            dense[h] = cells
    return dense


class Tile(NamedTuple):
    """A block of the score matrix and how much of its band is visible.

    Attributes
    ----------
    rows, keys : range
        The block.
    kind : str
        ``"live"`` (every cell), ``"partial"`` or ``"dead"`` (no cell).
    """

    rows: range
    keys: range
    kind: str


def tiles(problem: Problem, rows_per_tile: int, keys_per_tile: int) -> Iterator[Tile]:
    """Yield the tiles of the score matrix, each with its kind under the band.

    Mask and bias are data and are not looked at: a kind follows from the
    bounds of the first and the last row alone.

    Examples
    --------
    >>> from flashlib.problem import attention_problem
    >>> x = np.zeros((4, 1, 1))
    >>> problem, _ = attention_problem(x, x, x, causal=True)
    >>> [tile.kind for tile in tiles(problem, 2, 2)]
    ['partial', 'dead', 'live', 'partial']
    """
    for i in range(0, problem.seq_q, rows_per_tile):
        rows = range(i, min(i + rows_per_tile, problem.seq_q))
        for j in range(0, problem.seq_k, keys_per_tile):
            keys = range(j, min(j + keys_per_tile, problem.seq_k))
            yield Tile(rows, keys, _kind(problem, rows, keys))


def key_tiles(problem: Problem, rows: range, tile: int) -> Iterator[range]:
    """Yield the tiles of keys that some row of `rows` may see, in order."""
    lo, _ = problem.kv_range(rows.start)
    _, hi = problem.kv_range(rows.stop - 1)
    for start in range(lo, hi, tile):
        yield range(start, min(start + tile, hi))


def _kind(problem: Problem, rows: range, keys: range) -> str:
    if _all_visible(problem, rows, keys):
        return "live"
    cells = _band_cells(problem, rows, keys)
    return "partial" if cells is None or cells.any() else "dead"


def _all_visible(problem: Problem, rows: range, keys: range) -> bool:
    # Bounds only grow from row to row: the last row's lo and the first
    # row's hi are the tightest.
    lo, _ = problem.kv_range(rows.stop - 1)
    _, hi = problem.kv_range(rows.start)
    return lo <= keys.start and keys.stop <= hi


def _band_cells(problem: Problem, rows: range, keys: range) -> np.ndarray | None:
    if not rows or _all_visible(problem, rows, keys):
        return None
    left, right = problem.reach
    positions = np.arange(rows.start, rows.stop)[:, None] + problem.offset
    distance = np.arange(keys.start, keys.stop) - positions
    return (distance >= -left) & (distance <= right)
