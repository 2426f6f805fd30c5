"""Short ways to write a call down, and to compare with what one computes by hand."""

import numpy as np
import pytest
from cached_ways import engines

from flashlib import AttentionOutput

backends = pytest.mark.parametrize("backend", engines())
splits = pytest.mark.parametrize("num_splits", [None, 1, 2, 3])


def row(*x, dtype=np.float32):
    """n tokens of one sequence, one head, width 1: ``[1, n, 1, 1]``."""
    return np.array(x, dtype).reshape(1, -1, 1, 1)


def close(got, want, tolerance=3e-7):
    """Compare numbers in their order, whatever the shape."""
    got, want = (np.asarray(x, np.float64).ravel() for x in (got, want))
    assert got.size == want.size
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=0)


def check(result, out=None, lse=None):
    assert isinstance(result, AttentionOutput)
    if out is not None:
        close(result.out, out)
    if lse is not None:
        close(result.lse, lse)
