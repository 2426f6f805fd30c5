"""Checks of masks and biases (book)."""

import math

import numpy as np

from flashlib.contract.agree import agree, col, draw, ones, right, zeros
from flashlib.contract.check import Topic

topic = Topic("masks")


@topic.check("True attends and False does not.")
def mask_true_attends(attention):
    mask = np.array([[True, False, True]])
    agree(attention(zeros(1), ones(3), col(1, 50, 3), mask=mask), 2, math.log(2))


@topic.check("A mask of one column stands for whole rows.")
def mask_column(attention):
    got = attention(zeros(2), ones(2), col(1, 3), mask=np.array([[True], [False]]))
    agree(got, [2, 0], [math.log(2), -np.inf])


@topic.check("Every head has its own mask.")
def mask_per_head(attention):
    q = np.zeros((2, 2, 1), np.float32)
    k = np.zeros((2, 1, 1), np.float32)
    got = attention(q, k, col(1, 3), mask=np.array([[[False]], [[True]]]))
    agree(got, [0, 2, 0, 2])


@topic.check("A very low score that is attended beats a key that is hidden.")
def low_score_attended(attention):
    mask = np.array([[True, False]])
    got = attention(col(-20000), col(1, 0), col(1, 100), mask=mask, scale=1.0)
    agree(got, 1, -20000)


@topic.check("A very low score that is attended beats the future.")
def low_score_causal(attention):
    q = col(-20000, -20000)
    got = attention(q, col(1, 0), col(1, 100), causal=True, scale=1.0)
    agree(got, [1, 100], [-20000, 0])


@topic.check("A finite bias hides nothing, however low it is.")
def finite_bias_attends(attention):
    bias = np.float32([[-1e38, -1e38]])
    agree(attention(zeros(1), ones(2), col(7, 9), bias=bias), 8)
    lowest = np.full((1, 2), np.finfo(np.float32).min)
    agree(attention(zeros(1), zeros(2), col(7, 9), bias=lowest), 8)


@topic.check("A bias is added to the score of its own row, key and head.")
def bias_added(attention):
    q, k, v = draw(3, 5, n_heads=2, seed=11)
    bias = np.random.default_rng(12).standard_normal((2, 3, 5), np.float32)
    right(attention, q, k, v, bias=bias, causal=True)


@topic.check("Whatever a bias holds under a mask or outside the window is not read.")
def bias_under_mask(attention):
    call = zeros(1), ones(4), col(9, 1, 2, 9)
    bias = np.float32([[np.nan, 0, 0, np.nan]])
    mask = np.array([[True, True, True, False]])
    got = attention(*call, bias=bias, mask=mask, causal=True, window=3)
    agree(got, 1.5)
