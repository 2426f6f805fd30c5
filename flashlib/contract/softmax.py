"""Checks of the softmax itself: scores large, deep, far apart, capped (book)."""

import math

import numpy as np

from flashlib.contract.agree import agree, col, draw, ones, right, zeros
from flashlib.contract.check import Topic
from flashlib.row import SCORES

topic = Topic("softmax")


@topic.check("Equal scores give the plain mean, and lse is the log of the count.")
def equal_scores(attention):
    got = attention(zeros(1), ones(4), col(0, 1, 2, 9))
    agree(got, 3, math.log(4))


@topic.check("The running row comes out as worked on paper.")
def worked_row(attention):
    weights = [math.exp(s) for s in SCORES]
    mean = sum(w * j for j, w in enumerate(weights)) / sum(weights)
    got = attention(col(1), col(*SCORES), col(*range(6)), scale=1.0)
    agree(got, mean, math.log(sum(weights)))


@topic.check("Scores of 1000 do not overflow.")
def huge_scores(attention):
    got = attention(col(1), col(1000, 999), col(1, 0), scale=1.0)
    agree(got, 1 / (1 + math.exp(-1)), 1000 + math.log1p(math.exp(-1)))


@topic.check("Scores of -1000 do not underflow.")
def deep_scores(attention):
    got = attention(col(1), col(-1000, -1001), col(1, 0), scale=1.0)
    agree(got, 1 / (1 + math.exp(-1)), -1000 + math.log1p(math.exp(-1)))


@topic.check("A weight below the smallest float is zero, and never negative.")
def vanishing_weight(attention):
    for depth in (-100, -1e4, -3e38):
        out = attention(col(1), col(0, depth), col(0, 1), scale=1.0).out.item()
        assert 0 <= out < 1e-30, (
            f"out has {out:.3g} at a score of {depth:g}; expected 0"
        )


@topic.check("A row with one key returns the value of that key to the bit.")
def single_key(attention):
    v = np.float32([[[0.1, -3e38, 7.7]]])
    for score in (0.0, 3.25, -80.5, 2e4):
        got = attention(col(1), col(score), v, scale=1.0)
        out = got.out.ravel()
        assert np.array_equal(out, v.ravel()), f"out has {out}; expected {v.ravel()}"
        agree(got, lse=score, said=f"at a score of {score:g}")


@topic.check("Adding one vector to every key moves lse and nothing else.")
def common_key(attention):
    q, k, v = draw(3, 9, head_dim=4, seed=1)
    common = np.float32([0.5, -1, 2, 0.25])
    plain, moved = attention(q, k, v), attention(q, k + common, v)
    agree(moved, plain.out, plain.lse + (q @ common) / 2, "with a common vector added")


@topic.check("A constant value comes back.")
def constant_value(attention):
    q, k, v = draw(2, 70, seed=2, gain=3)
    agree(attention(q, k, np.full_like(v, 0.75)), np.full((2, 1, 2), 0.75))


@topic.check("Width 9 is scaled by a third where no scale is given.")
def usual_scale(attention):
    q, k = np.ones((1, 1, 9), np.float32), np.ones((1, 1, 9), np.float32)
    agree(attention(q, k, col(5)), 5, 3.0)


@topic.check("A negative scale turns the order of the scores around.")
def negative_scale(attention):
    got = attention(col(1), col(1, 2), col(1, 3), scale=-1.0)
    agree(got, (math.e + 3) / (math.e + 1), math.log(math.exp(-1) + math.exp(-2)))


@topic.check("A scale of zero makes all scores equal.")
def zero_scale(attention):
    agree(attention(col(1), col(1, 2), col(1, 3), scale=0.0), 2, math.log(2))


@topic.check("The softcap is c tanh(s / c).")
def softcap(attention):
    got = attention(col(1), col(4), col(1), scale=1.0, softcap=2.0)
    agree(got, 1, 2 * math.tanh(2), "with one key")
    got = attention(col(1), col(4, 0), col(1, 0), scale=1.0, softcap=2.0)
    agree(got, 1 / (1 + math.exp(-2 * math.tanh(2))), said="with two keys")


@topic.check("The softcap comes after the scale.")
def softcap_after_scale(attention):
    got = attention(col(1), col(8), col(1), scale=0.5, softcap=2.0)
    agree(got, 1, 2 * math.tanh(2))


@topic.check("A bias is added after the softcap and is not squeezed by it.")
def bias_after_softcap(attention):
    q, k, v = draw(2, 5, seed=3, gain=5)
    right(attention, q, k, v, softcap=1.5, bias=np.float32([[4, -3, 0, 2, -6]]))


@topic.check("A softcap below one caps as well.")
def small_softcap(attention):
    got = attention(col(1), col(4, 0), col(1, 0), scale=1.0, softcap=0.5)
    first = math.exp(0.5 * math.tanh(8))
    agree(got, first / (first + 1), math.log(first + 1))


@topic.check("The smallest and the largest softcap and scale give numbers.")
def extreme_softcap(attention):
    for softcap in (1e-40, 1e-38, 1e38):
        for scale in (1e-40, 1.0):
            got = attention(
                col(1), col(0, 1e-3, 1), col(1, 2, 3), scale=scale, softcap=softcap
            )
            capped = [softcap * math.tanh(scale * s / softcap) for s in (0, 1e-3, 1)]
            weights = [math.exp(s) for s in capped]
            mean = (weights[0] + 2 * weights[1] + 3 * weights[2]) / sum(weights)
            said = f"at a softcap of {softcap:g} and a scale of {scale:g}"
            agree(got, mean, math.log(sum(weights)), said)


@topic.check("Large values come back, and infinite ones too.")
def large_values(attention):
    for value in (1e30, -1e30, np.inf, -np.inf):
        agree(attention(zeros(1), ones(2), col(value, value)), value)


@topic.check("A row whose scores are all -inf attends them: 0 / 0.")
def weightless_row(attention):
    got = attention(ones(2), col(-np.inf, -np.inf), col(3, 4), scale=1.0)
    agree(got, [np.nan, np.nan])
