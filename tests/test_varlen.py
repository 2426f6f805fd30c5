"""Packed rows: what segments must not change, and which bounds are refused."""

import re

import numpy as np
import pytest
from cached_ways import engines
from junk import JUNK, backends, draw, dtypes, options_given, with_sink
from ways import same_bits

import flashlib
from flashlib import ArgumentError, AttentionOutput, DTypeError, ShapeError


@backends
@dtypes
@options_given
def test_junk_between_segments(backend, dtype, options):
    """Rows of other segments, and rows of nobody, are not read."""
    q, k, v = draw(dtype, (80, 6, 20), (90, 2, 20), (90, 2, 9))

    def run(junk):
        for x, behind in ((q, 75), (k, 85), (v, 85)):
            x[20:30], x[behind:] = junk, junk
        result = flashlib.flash_attention_varlen(
            q,
            k,
            v,
            cu_seqlens_q=[0, 20, 30, 75],
            cu_seqlens_k=[0, 20, 30, 85],
            causal=True,
            backend=backend,
            **with_sink(options, 6, dtype),
        )
        return AttentionOutput(
            *(np.concatenate([x[:20], x[30:75]]) for x in result)
        ), result

    clean, _ = run(0)
    for junk in JUNK:
        mine, everything = run(junk)
        assert same_bits(mine, clean)
        assert (everything.out[75:] == 0).all() and (everything.lse[75:] < -1e9).all()


@backends
@dtypes
@options_given
def test_a_segment_is_a_call_of_its_own(backend, dtype, options):
    q, k, v = draw(dtype, (70, 4, 16), (100, 2, 16), (100, 2, 16))
    options = {**with_sink(options, 4, dtype), "causal": True, "backend": backend}
    bounds_q, bounds_k = [0, 1, 1, 40, 70], [0, 3, 20, 20, 100]
    packed = flashlib.flash_attention_varlen(
        q, k, v, cu_seqlens_q=bounds_q, cu_seqlens_k=bounds_k, **options
    )
    for n in range(4):
        rows = slice(bounds_q[n], bounds_q[n + 1])
        keys = slice(bounds_k[n], bounds_k[n + 1])
        alone = flashlib.flash_attention(q[rows], k[keys], v[keys], **options)
        mine = AttentionOutput(packed.out[rows].copy(), packed.lse[rows].copy())
        assert same_bits(mine, alone)


LONG = {"backend": "blocked", "window": (4714, 0)}


@pytest.mark.skipif("blocked" not in engines(), reason="needs the compiler")
@pytest.mark.parametrize("sink", [None, np.float32([1])], ids=["plain", "sink"])
def test_batch_mates_change_no_bit_of_a_long_window(sink):
    q, k, v = draw(np.float32, (200, 1, 16), (9000, 1, 16), (9000, 1, 16))
    three = [np.concatenate([x, x, x]) for x in (q, k, v)]
    alone = flashlib.flash_attention(q, k, v, **LONG, sink=sink)
    packed = flashlib.flash_attention_varlen(
        *three,
        cu_seqlens_q=np.arange(4) * len(q),
        cu_seqlens_k=np.arange(4) * len(k),
        **LONG,
        sink=sink,
    )
    for n in range(3):
        own = slice(n * len(q), (n + 1) * len(q))
        assert same_bits(alone, AttentionOutput(*(x[own] for x in packed)))


def varlen(cu_seqlens_q=(0, 2), cu_seqlens_k=(0, 6), n=2):
    q, k = np.zeros((n, 4, 8), np.float32), np.zeros((6, 2, 8), np.float32)
    return flashlib.flash_attention_varlen(
        q, k, k, cu_seqlens_q=cu_seqlens_q, cu_seqlens_k=cu_seqlens_k
    )


REFUSED = [
    ({"cu_seqlens_q": [1, 2]}, ArgumentError, "cu_seqlens_q[0] has 1"),
    ({"cu_seqlens_q": [0, 3]}, ArgumentError, "at most total_q = 2"),
    ({"cu_seqlens_k": [0, 7]}, ArgumentError, "at most total_k = 6"),
    ({"cu_seqlens_q": [0, 1, 2]}, ShapeError, "expected equal sizes"),
    ({"cu_seqlens_q": []}, ShapeError, "cu_seqlens_q has no entries"),
    ({"cu_seqlens_q": [0.0, 2.0]}, DTypeError, "expected integers"),
    (
        {"cu_seqlens_q": [0, 2, 1], "cu_seqlens_k": [0, 1, 2]},
        ArgumentError,
        "cu_seqlens_q[2] has 1; expected at least 2",
    ),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case[2])
def test_refused(case):
    arguments, error, message = case
    with pytest.raises(error, match=re.escape(message)) as caught:
        varlen(**arguments)
    text = str(caught.value)
    assert "\n" not in text and text[0] == text[0].lower()


def test_no_segment_is_legal():
    assert varlen([0], [0]).lse.tolist() == [[-np.inf] * 4] * 2
    assert varlen([0], [0], n=0).out.shape == (0, 4, 8)
