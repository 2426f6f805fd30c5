"""From one element type to another: through float32, rounded and saturated once."""

import ml_dtypes
import numpy as np
import pytest

from flashlib.machine.dtypes import INTEGERS, SUPPORTED, rounded

BF16 = ml_dtypes.bfloat16

#: Beyond 2**24 float32 has no longer every integer; the ends saturate.
WIDE = {
    np.int32: [2**24 + 1, -1, 2**31 - 1, -(2**31)],
    np.uint32: [2**24 + 1, 2**32 - 1, 2**31, 0],
}


def _copies(b, x, dtype):
    """The same values by the vector engine, by DMA, by DMA again and by a gather."""
    table, held = b.m.hbm.put(x), b.m.sbuf.put(x)
    outs = [b.m.sbuf.alloc(x.shape, dtype) for _ in range(4)]
    index = b.m.sbuf.put(np.arange(len(x), dtype=np.uint32)[:, None])
    rows = table.ap([[x.shape[1], len(x)], [1, x.shape[1]]], vector_offset=index)
    b.isa.tensor_copy(outs[0], held)
    b.isa.dma_copy(outs[1], table)
    b.isa.dma_copy(outs[2], held)
    b.isa.dma_copy(outs[3], rows)
    return [out.numpy() for out in outs]


def test_wide_integers_of_two_types_go_through_float32(bench):
    x = np.array([WIDE[np.int32]], np.int32)
    for out in _copies(bench, x, np.uint32):
        assert out.tolist() == [[2**24, 0, 2**31, 0]]
    x = np.array([WIDE[np.uint32]], np.uint32)
    for out in _copies(bench, x, np.int32):
        assert out.tolist() == [[2**24, 2**31 - 1, 2**31 - 1, 0]]


@pytest.mark.parametrize("dtype", WIDE)
def test_one_type_keeps_its_bits(bench, dtype):
    x = np.array([WIDE[dtype]], dtype)
    for out in _copies(bench, x, dtype):
        np.testing.assert_array_equal(out, x)


@pytest.mark.parametrize("dtype", SUPPORTED, ids=str)
@pytest.mark.parametrize("source", SUPPORTED, ids=str)
def test_every_copy_casts_like_every_other(bench, source, dtype):
    x = np.array([[0, 1, 3, 127], [100, 2, 5, 64]]).astype(source)
    if source in WIDE:
        x = np.vstack([x, np.array([WIDE[source.type]], source)])
    want = x if source == dtype else rounded(x.astype(np.float32), dtype)
    for out in _copies(bench, x, dtype):
        assert out.dtype == dtype
        np.testing.assert_array_equal(out, want)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integers_that_a_narrower_type_lacks_saturate(dtype):
    ends = np.iinfo(dtype)
    far = np.array([ends.min - 1, ends.max + 1, 2**40, -(2**40), 7], np.int64)
    if dtype.itemsize < 4:
        assert rounded(far, dtype).tolist() == [0, ends.max, ends.max, 0, 7]
    near = np.array([0, 7, 255], np.uint8)
    assert rounded(near, dtype).tolist() == [0, 7, 255]


def test_integers_of_32_bits_keep_theirs():
    ones = np.array([-1, 5], np.int32)
    assert rounded(ones, np.dtype(np.uint32)).tolist() == [2**32 - 1, 5]
    assert rounded(ones.view(np.uint32), np.dtype(np.int32)).tolist() == [-1, 5]


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_an_index_pattern_saturates_in_a_narrow_type(bench, dtype):
    d, top = bench.m.sbuf.alloc((1, 4), dtype), np.iinfo(dtype).max
    bench.isa.iota(d, [[top, 4]], offset=-1)
    assert d.numpy().tolist() == [[0, top - 1, top, top]]
