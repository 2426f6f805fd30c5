"""Checks of sliding windows (book)."""

import numpy as np

from flashlib.contract.agree import agree, col, draw, ones, right, zeros
from flashlib.contract.check import Topic

topic = Topic("windows")
FIVE = (ones(5), col(0, 1, 2, 3, 4))


@topic.check("A window of w tokens counts the token itself.")
def window_counts_self(attention):
    got = attention(zeros(5), *FIVE, causal=True, window=2)
    agree(got, [0, 0.5, 1.5, 2.5, 3.5], np.log([1, 2, 2, 2, 2]))


@topic.check("A window of one token is the token itself.")
def window_of_one(attention):
    agree(attention(zeros(5), *FIVE, causal=True, window=1), [0, 1, 2, 3, 4], [0] * 5)


@topic.check("A window (left, right) sees left keys before, and both ends.")
def window_pair(attention):
    got = attention(zeros(5), *FIVE, causal=True, window=(2, 0))
    agree(got, [0, 0.5, 1, 2, 3], np.log([1, 2, 3, 3, 3]))


@topic.check("A window is placed by the position, not by the row number.")
def window_offset(attention):
    got = attention(zeros(2), *FIVE, causal=True, window=2)
    agree(got, [2.5, 3.5], np.log([2, 2]))


@topic.check("A window without causal looks ahead as well.")
def window_ahead(attention):
    got = attention(zeros(5), *FIVE, window=(1, 1))
    agree(got, [0.5, 1, 2, 3, 3.5], np.log([2, 3, 3, 3, 2]))


@topic.check("None leaves that side of a window open.")
def window_open_side(attention):
    got = attention(zeros(5), *FIVE, window=(None, 1))
    agree(got, [0.5, 1, 1.5, 2, 2], np.log([2, 3, 4, 5, 5]))


@topic.check("A window and a mask both have to agree.")
def window_and_mask(attention):
    mask = np.array([[True, False, True, True, True]])
    got = attention(zeros(5), *FIVE, window=(1, 0), mask=mask)
    agree(got, [0, 0, 2, 2.5, 3.5], np.log([1, 1, 1, 2, 2]))


@topic.check("A window that starts in the middle of a tile comes out right.")
def window_across_tiles(attention):
    q, k, v = draw(3, 200, seed=10)
    right(attention, q, k, v, causal=True, window=90)
