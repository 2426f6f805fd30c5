"""Checks of attention sinks (book)."""

import math

import numpy as np

from flashlib.contract.agree import agree, col, draw, ones, right, zeros
from flashlib.contract.check import Topic

topic = Topic("sinks")


@topic.check("A sink adds exp(sink) to the denominator and nothing to the numerator.")
def sink_in_denominator(attention):
    for n, sink in ((2, 1.0), (3, -1.0)):
        got = attention(zeros(1), ones(n), ones(n), sink=np.float32([sink]))
        total = n + math.exp(sink)
        agree(got, n / total, math.log(total), f"with {n} keys")


@topic.check("A sink is counted once, however many tiles there are.")
def sink_counted_once(attention):
    right(attention, *draw(2, 200, seed=19), sink=np.float32([3]))


@topic.check("Every query head has its own sink.")
def sink_per_head(attention):
    q, k, v = draw(2, 5, n_heads=4, n_kv_heads=2, seed=20)
    right(attention, q, k, v, sink=np.float32([2, -1, 0.5, 4]))


@topic.check("A row without keys has the sink as its lse, and an output of zero.")
def sink_alone(attention):
    mask = np.array([[False, False]])
    got = attention(col(1), col(1, 2), col(3, 4), mask=mask, sink=np.float32([1]))
    agree(got, 0, 1)


@topic.check("A sink of -inf is no sink.")
def sink_of_nothing(attention):
    got = attention(zeros(1), ones(2), col(1, 3), sink=np.float32([-np.inf]))
    agree(got, 2, math.log(2))


@topic.check("A sink far above the scores takes all the weight.")
def sink_above_scores(attention):
    got = attention(zeros(1), ones(2), col(1, 3), sink=np.float32([500]))
    agree(got, 0, 500)
