"""Cut the keys of one query into parts, and merge what the parts give (chapter 14).

One new token has no rows to share out between cores; its keys have to be
shared out instead. Every part is an online softmax of its own, and the states
merge like tiles do. The sink is one state more: it is counted once.
"""

from itertools import pairwise

import numpy as np

from flashlib.backends.tile_walk import finish, take_tile
from flashlib.chains import STRETCH
from flashlib.online_softmax import OnlineSoftmax
from flashlib.output import AttentionOutput
from flashlib.problem import Problem
from flashlib.scores import head_copy

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
    q, k, v : ndarray
        In the work type of the problem.
    num_splits : int
        More parts than keys are as many as keys; a part longer than a stretch
        is cut again.
    tile : int
        Keys per step within a part.
    """
    rows = problem.seq_q, problem.n_heads
    out, lse = result = AttentionOutput.empty(rows, problem.head_dim_v, problem.work)
    for h in range(problem.n_heads):
        kv_head = h // problem.group
        tensors = head_copy(q, h), head_copy(k, kv_head), head_copy(v, kv_head)
        out[:, h], lse[:, h] = _one_head(problem, h, tensors, num_splits, tile)
    return result


def _one_head(
    problem: Problem,
    h: int,
    tensors: tuple[np.ndarray, np.ndarray, np.ndarray],
    num_splits: int,
    tile: int,
) -> tuple[np.ndarray, np.ndarray]:
    rows = range(problem.seq_q)
    form = problem.head_dim_v, problem.work, (len(rows),)
    state = OnlineSoftmax.start(*form, problem.sinks[h])
    attends = np.zeros(len(rows), bool)
    wanted = max(min(num_splits, problem.seq_k), -(-problem.seq_k // STRETCH), 1)
    for part in cut(range(problem.seq_k), wanted):
        partial = OnlineSoftmax.identity(*form)
        for first in range(part.start, part.stop, tile):
            keys = range(first, min(first + tile, part.stop))
            partial, seen = take_tile(problem, h, tensors, rows, keys, partial)
            attends |= seen
        state = state.merge(partial)
    return finish(state, attends)
