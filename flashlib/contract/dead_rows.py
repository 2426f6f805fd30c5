"""Checks of rows that attend to nothing, and of sizes of zero (book)."""

import numpy as np

from flashlib.contract.agree import agree, col, draw, ones, zeros
from flashlib.contract.check import Topic

topic = Topic("dead rows")


@topic.check("A row that a mask leaves without keys is zero, and its lse is -inf.")
def dead_by_mask(attention):
    mask = np.array([[False, False]])
    agree(attention(col(1), col(1, 2), col(10, 20), mask=mask), 0, -np.inf)


@topic.check("A row that a bias leaves without keys is zero, and its lse is -inf.")
def dead_by_bias(attention):
    bias = np.full((1, 2), -np.inf, np.float32)
    agree(attention(col(1), col(1, 2), col(10, 20), bias=bias), 0, -np.inf)


@topic.check("A dead row is zero also after many tiles.")
def dead_by_long_mask(attention):
    q, k, v = draw(1, 150, seed=21)
    got = attention(q, k, v, mask=np.zeros((1, 150), bool))
    agree(got, [0, 0], -np.inf)


@topic.check("A dead row between live ones stays apart from them.")
def dead_between_live(attention):
    mask = np.array([[True, True], [False, False], [True, True]])
    got = attention(zeros(3), ones(2), col(10, 20), mask=mask)
    agree(got, [15, 0, 15], [np.log(2), -np.inf, np.log(2)])


@topic.check("No keys give zeros with an lse of -inf, no queries an empty result.")
def zero_sizes(attention):
    agree(attention(zeros(2), zeros(0), zeros(0)), [0, 0], [-np.inf, -np.inf])
    got = attention(zeros(0), ones(3), ones(3), causal=True)
    shapes = got.out.shape, got.lse.shape
    want = (0, 1, 1), (0, 1)
    assert shapes == want, f"out and lse have shapes {shapes}; expected {want}"
