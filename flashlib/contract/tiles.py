"""Checks around the ends of tiles, and of the rescale between them (book)."""

import numpy as np

from flashlib.contract.agree import agree, col, draw, ones, right, zeros
from flashlib.contract.check import Topic

topic = Topic("tiles")


@topic.check("Lengths on both sides of one and two tiles of 64 come out right.")
def around_the_tile(attention):
    for n in (1, 63, 64, 65, 127, 128, 129):
        right(attention, *draw(1, n, seed=n, gain=2), said=f"with {n} keys")


@topic.check("Scores that rise from tile to tile rescale what was added before.")
def rising_scores(attention):
    scores = np.arange(200) / 16
    right(attention, col(1), col(*scores), col(*np.cos(scores)), scale=1.0)


@topic.check("Scores that fall from tile to tile keep the first max.")
def falling_scores(attention):
    scores = np.arange(200)[::-1] / 16
    right(attention, col(1), col(*scores), col(*np.cos(scores)), scale=1.0)


@topic.check("A first tile of which nothing is attended leaves no trace.")
def hidden_first_tile(attention):
    mask = np.arange(192) >= 128
    right(attention, *draw(2, 192, seed=5), mask=mask[None])


@topic.check("A tile in the middle of which nothing is attended leaves no trace.")
def hidden_middle_tile(attention):
    keys = np.arange(192)
    right(attention, *draw(2, 192, seed=6), mask=((keys < 64) | (keys >= 128))[None])


@topic.check("A last tile of which nothing is attended leaves no trace.")
def hidden_last_tile(attention):
    right(attention, *draw(2, 192, seed=7), mask=(np.arange(192) < 64)[None])


@topic.check("Thousands of equal scores give the plain mean.")
def long_row(attention):
    n = 4100
    agree(attention(zeros(1), ones(n), col(*range(n))), (n - 1) / 2, np.log(n))


@topic.check("Columns beyond 128 are scored and rescaled like the others.")
def wide_heads(attention):
    random = np.random.default_rng(27)
    q, k = (random.standard_normal((n, 1, 200), np.float32) for n in (1, 130))
    v = random.standard_normal((130, 1, 150), np.float32)
    k += np.arange(130, dtype=np.float32)[:, None, None] / 500 * np.sign(q[0])
    right(attention, q, k, v)
