"""Checks that what is hidden is not read, and that what is attended shows (book)."""

import numpy as np

from flashlib.contract.agree import agree, col, draw, ones, unread, zeros
from flashlib.contract.check import Topic

topic = Topic("unread")


@topic.check("Junk under a mask changes no bit.")
def junk_under_mask(attention):
    q, k, v = draw(2, 6, seed=22)
    mask = np.array([[True, False, True, True, False, True]])
    unread(attention, q, k, v, [1, 4], "under the mask", mask=mask)


@topic.check("Junk under a bias of -inf changes no bit.")
def junk_under_bias(attention):
    q, k, v = draw(2, 6, seed=23)
    bias = np.float32([[0, -np.inf, 1, 0, 0, 0]])
    unread(attention, q, k, v, [1], "under a bias of -inf", bias=bias)


@topic.check("Junk in the future changes no bit.")
def junk_in_the_future(attention):
    q, k, v = draw(7, 7, seed=24)
    mask = np.ones((7, 7), bool)
    mask[6, 6] = False
    unread(attention, q, k, v, [6], "in the future", causal=True, mask=mask)


@topic.check("Junk outside the window changes no bit.")
def junk_outside_window(attention):
    q, k, v = draw(2, 80, seed=25)
    unread(attention, q, k, v, slice(0, 74), "outside", causal=True, window=4)


@topic.check("A NaN in a query shows in its own row only.")
def nan_in_query(attention):
    q = col(0, 0, np.nan, 0, 0)
    got = attention(q, ones(3), col(3, 6, 9), causal=True, scale=1.0)
    want = [-np.inf, -np.inf, np.nan, np.log(2), np.log(3)]
    agree(got, [0, 0, np.nan, 4.5, 6], want)


@topic.check("A NaN in a key shows in the rows that attend it.")
def nan_in_key(attention):
    got = attention(ones(3), col(1, np.nan, 1), ones(3), causal=True)
    agree(got, [1, np.nan, np.nan], [1, np.nan, np.nan])


@topic.check("A NaN in a value shows in the rows that attend it, and not in lse.")
def nan_in_value(attention):
    got = attention(zeros(3), ones(3), col(2, 4, np.nan), causal=True)
    agree(got, [2, 3, np.nan], np.log([1, 2, 3]))


@topic.check("A row after a row of NaN is clean.")
def clean_after_nan(attention):
    q = np.zeros((2, 2, 1), np.float32)
    q[0] = np.nan
    got = attention(q, np.ones((2, 1, 1), np.float32), col(2, 4))
    agree(got, [np.nan, np.nan, 3, 3])


@topic.check("A NaN in a value shows also under a weight that is zero.")
def nan_under_zero_weight(attention):
    got = attention(col(1), col(0, -200), col(1, np.nan), scale=1.0)
    agree(got, np.nan, 0)
