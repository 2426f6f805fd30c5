"""Checks of heads, groups, widths and layouts (book)."""

import numpy as np

from flashlib.contract.agree import agree, draw, right, same_bits
from flashlib.contract.check import Topic

topic = Topic("heads")


@topic.check("Query head h reads KV head h // group.")
def grouped_heads(attention):
    q = np.zeros((1, 4, 1), np.float32)
    v = np.float32([[[1], [2]]])
    agree(attention(q, np.zeros_like(v), v), [1, 1, 2, 2])


@topic.check("Grouped heads equal repeated KV heads bit for bit.")
def grouped_equals_repeated(attention):
    q, k, v = draw(2, 70, n_heads=6, n_kv_heads=2, head_dim=3, seed=13)
    repeated = attention(q, np.repeat(k, 3, axis=1), np.repeat(v, 3, axis=1))
    same_bits(repeated, attention(q, k, v), "of grouped heads")


@topic.check("Values may be wider or narrower than keys.")
def value_width(attention):
    q, k, _ = draw(2, 6, head_dim=4, seed=14)
    for width in (1, 3, 7):
        v = draw(2, 6, head_dim=width, seed=15)[2]
        right(attention, q, k, v, said=f"of width {width}")


@topic.check("Odd widths come out right.")
def odd_width(attention):
    for head_dim in (1, 7, 9, 63):
        right(attention, *draw(2, 5, head_dim=head_dim, seed=16))


@topic.check("Any strides give the bits of a contiguous copy.")
def strides(attention):
    q, k, v = draw(4, 20, n_heads=3, n_kv_heads=3, head_dim=6, seed=17)
    views = [
        [x[::2, ::2, 1::2] for x in (q, k, v)],
        [x[::-1] for x in (q, k, v)],
        [np.asfortranarray(x) for x in (q, k, v)],
        [np.broadcast_to(x[:1], x.shape) for x in (q, k, v)],
    ]
    for view in views:
        copies = [np.ascontiguousarray(x) for x in view]
        same_bits(attention(*copies), attention(*view), "of a view")


@topic.check("Where float16 goes in, float16 comes out, and lse stays float32.")
def half_in_half_out(attention):
    q, k, v = (x.astype(np.float16) for x in draw(2, 5, head_dim=4, seed=18))
    got = attention(q, k, v)
    seen, want = (got.out.dtype.name, got.lse.dtype.name), ("float16", "float32")
    assert seen == want, f"out and lse have dtypes {seen}; expected {want}"
    exact = attention(*(x.astype(np.float32) for x in (q, k, v)))
    same_bits(got, exact._replace(out=exact.out.astype(np.float16)), "in float32")
