"""Checks of the causal bound, square and with an offset (book)."""

import numpy as np

from flashlib.contract.agree import agree, col, draw, ones, right, zeros
from flashlib.contract.check import Topic

topic = Topic("causal")


@topic.check("Row i of a square call sees the keys 0 to i.")
def causal_square(attention):
    got = attention(zeros(4), ones(4), col(0, 1, 2, 3), causal=True)
    agree(got, [0, 0.5, 1, 1.5], np.log([1, 2, 3, 4]))


@topic.check("With more keys than queries the last query sees the last key.")
def causal_offset(attention):
    got = attention(zeros(2), ones(5), col(0, 1, 2, 3, 4), causal=True)
    agree(got, [1.5, 2], np.log([4, 5]))


@topic.check("With more queries than keys the first rows see nothing.")
def causal_more_queries(attention):
    got = attention(ones(40), ones(3), ones(3), causal=True, scale=0.0)
    agree(got, [0] * 37 + [1] * 3, [-np.inf] * 37 + list(np.log([1, 2, 3])))


@topic.check("A causal row ends at its own key also inside a tile.")
def causal_across_tiles(attention):
    for seq_q, seq_k in ((70, 70), (8, 130)):  # past the end of one tile, and of two
        said = f"with {seq_q} queries on {seq_k} keys"
        right(attention, *draw(seq_q, seq_k, seed=8), said, causal=True)


@topic.check("Without causal every row sees every key.")
def not_causal(attention):
    right(attention, *draw(4, 9, seed=9))


@topic.check("Rows beyond 256 end at their own key.")
def causal_many_rows(attention):
    q, k, v = zeros(260), zeros(260), col(*range(260))
    n = np.arange(260)
    agree(attention(q, k, v, causal=True), n / 2, np.log(n + 1))
