"""Indices that a gather leaves out: counted in no byte, and refused by nobody."""

import ml_dtypes
import numpy as np
import pytest

from flashlib.machine import timeline

BF16 = ml_dtypes.bfloat16
OUTSIDE = 0xFFFFFFFF


def _transposed(b, indices, count, mode="error"):
    """Gather and turn ``count`` rows of 8; return the table, before and after."""
    table, d = b.hbm(40, 8, dtype=BF16), b.sbuf(8, count, dtype=BF16)
    before = d.numpy()
    index = b.m.sbuf.put(np.array(indices, np.uint32)[:, None])
    src = table.ap([[8, count], [1, 8]], vector_offset=index)
    b.isa.dma_transpose(d, src, oob_mode=mode)
    return table.numpy(), before, d.numpy()


@pytest.mark.parametrize("last", [OUTSIDE, 40])
def test_an_index_beyond_the_rows_is_not_looked_at(bench, last):
    """32 indices, 16 rows: the 17th index belongs to no row of the pattern."""
    indices = [*range(16), *[last] * 16]
    table, _, after = _transposed(bench, indices, 16)
    np.testing.assert_array_equal(after, table[:16].T)
    assert bench.m.trace.records[-1].nbytes == 16 * 8 * 2


def test_a_gathered_transpose_counts_the_rows_that_it_moves(bench):
    indices = [i if i % 4 else OUTSIDE for i in range(16)]
    table, before, after = _transposed(bench, indices, 16, "skip")
    kept = np.arange(16) % 4 == 0
    np.testing.assert_array_equal(after, np.where(kept, before, table[:16].T))
    assert bench.m.trace.records[-1].nbytes == 12 * 8 * 2
    assert bench.m.trace.bytes(src="hbm") == 12 * 8 * 2


def test_skipped_rows_take_no_time(bench):
    _transposed(bench, range(16), 16, "skip")
    _transposed(bench, [OUTSIDE] * 16, 16, "skip")
    full, none = timeline(bench.m.trace).events
    assert none.busy == 0 < full.busy
    assert [r.nbytes for r in bench.m.trace] == [16 * 8 * 2, 0]
