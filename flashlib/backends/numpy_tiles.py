"""Walk tiles of keys past blocks of query rows, in NumPy (chapter 5)."""

import numpy as np

from flashlib.backends.tile_walk import finish, take_tile
from flashlib.chains import CHAIN
from flashlib.masks import key_tiles
from flashlib.online_softmax import OnlineSoftmax
from flashlib.output import AttentionOutput
from flashlib.problem import Problem
from flashlib.scores import head_copy

__all__ = ["BLOCK_ROWS", "attend_in_tiles"]

# Rows per block: enough to amortize the cost of a call of NumPy.
BLOCK_ROWS = 256


def attend_in_tiles(
    problem: Problem, q: np.ndarray, k: np.ndarray, v: np.ndarray, tile: int
) -> AttentionOutput:
    """Run one sequence, head after head, block after block.

    Parameters
    ----------
    problem : Problem
    q, k, v : ndarray
        In the work type of the problem.
    tile : int
        Keys per step.
    """
    seq_q, n_heads = problem.seq_q, problem.n_heads
    form = (seq_q, n_heads), problem.head_dim_v, problem.work
    out, lse = result = AttentionOutput.empty(*form)
    for h in range(n_heads):
        kv_head = h // problem.group
        q_head = head_copy(q, h)
        k_head, v_head = head_copy(k, kv_head), head_copy(v, kv_head)
        for start in range(0, seq_q, BLOCK_ROWS):
            rows = range(start, min(start + BLOCK_ROWS, seq_q))
            block = slice(rows.start, rows.stop)
            tensors = q_head[block], k_head, v_head
            out[block, h], lse[block, h] = _one_block(problem, h, rows, tensors, tile)
    return result


def _one_block(
    problem: Problem,
    h: int,
    rows: range,
    tensors: tuple[np.ndarray, np.ndarray, np.ndarray],
    tile: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Walk the keys of one block of rows of one head; return out and lse."""
    form = problem.head_dim_v, problem.work, (len(rows),)
    state = OnlineSoftmax.start(*form, problem.sinks[h])
    before = OnlineSoftmax.identity(*form)
    attends = np.zeros(len(rows), bool)
    for n, keys in enumerate(key_tiles(problem, rows, tile)):
        if n and n % CHAIN == 0:
            before, state = before.merge(state), OnlineSoftmax.identity(*form)
        state, seen = take_tile(problem, h, tensors, rows, keys, state)
        attends |= seen
    return finish(before.merge(state), attends)
