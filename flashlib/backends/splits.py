"""Cut the keys of one query into parts, and merge what the parts give (chapter 14).

One new token has no rows to share out between cores; its keys have to be
shared out instead. Every part is an online softmax of its own, and the states
merge like tiles do. The sink is one state more: it is counted once.
"""

from itertools import pairwise

import numpy as np

from flashlib.masks import attended
from flashlib.online_softmax import OnlineSoftmax
from flashlib.output import AttentionOutput
from flashlib.problem import Problem
from flashlib.scores import block_scores, head_copy
from flashlib.validation import STRETCH

__all__ = ["attend_in_parts", "cut"]


def cut(keys: range, num_splits: int) -> list[range]:
    """Cut a range into `num_splits` parts of equal size, give or take one key.

    Examples
    --------
    >>> cut(range(2, 9), 3)
    [range(2, 4), range(4, 6), range(6, 9)]
    """
    ends = [keys.start + len(keys) * n // num_splits for n in range(num_splits + 1)]
    return [range(*pair) for pair in pairwise(ends)]


def attend_in_parts(
    problem: Problem,
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    num_splits: int,
    tile: int,
) -> AttentionOutput:
    """Run one sequence, its keys in `num_splits` parts.

    Parameters
    ----------
    problem : Problem
    q, k, v : numpy.ndarray
        In the work type of the problem.
    num_splits : int
        More parts than keys are as many as keys; a part longer than a stretch
        is cut again.
    tile : int
        Keys per step within a part.
    """
    out = np.empty((problem.seq_q, problem.n_heads, problem.head_dim_v), problem.work)
    lse = np.empty(out.shape[:2], problem.work)
    for h in range(problem.n_heads):
        heads = [head_copy(q, h)]
        heads += [head_copy(x, h // problem.group) for x in (k, v)]
        out[:, h], lse[:, h] = _one_head(problem, h, heads, num_splits, tile)
    return AttentionOutput(out, lse)


def _one_head(
    problem: Problem, h: int, heads: list[np.ndarray], num_splits: int, tile: int
) -> tuple[np.ndarray, np.ndarray]:
    rows, width = (problem.seq_q,), problem.head_dim_v
    state = OnlineSoftmax.start(width, problem.work, rows, problem.sink_logit(h))
    attends = np.zeros(rows, bool)
    wanted = max(min(num_splits, problem.seq_k), -(-problem.seq_k // STRETCH), 1)
    for part in cut(range(problem.seq_k), wanted):
        partial = OnlineSoftmax.identity(width, problem.work, rows)
        for first in range(part.start, part.stop, tile):
            keys = range(first, min(first + tile, part.stop))
            partial, seen = _step(problem, h, heads, keys, partial)
            attends |= seen
        state = state.merge(partial)
    out = state.out
    # A row that attends keys, all of them with a score of -inf, is 0 / 0.
    out[attends & (state.l == 0)] = np.nan
    return out, state.lse


def _step(
    problem: Problem,
    h: int,
    heads: list[np.ndarray],
    keys: range,
    state: OnlineSoftmax,
) -> tuple[OnlineSoftmax, np.ndarray]:
    """Take all rows past a few keys; also return which rows attended one."""
    q, k, v = heads
    rows, some = range(problem.seq_q), slice(keys.start, keys.stop)
    with np.errstate(all="ignore"):
        s = block_scores(problem, h, q, k[some], rows, keys)
    visible = attended(problem, h, rows, keys)
    seen = np.ones(len(rows), bool) if visible is None else visible.any(axis=1)
    return state.update(s, v[some], visible), seen
