"""Dividing first and dividing last, and one that imitates the other."""

import numpy as np
import pytest

from flashlib.experiments.division import divide_first, divide_last, three_walks


@pytest.mark.parametrize("tile", [1, 4, 64, 1000])
@pytest.mark.parametrize("seq_k", [1, 6, 64, 65, 300])
def test_three_walks_return_the_old_bits(seq_k, tile):
    rng = np.random.default_rng(seq_k)
    s = np.float32(5 * rng.standard_normal(seq_k))
    v = np.float32(rng.standard_normal((seq_k, 16)))
    got = three_walks(lambda start, stop: s[start:stop], v, tile)
    assert np.array_equal(got, divide_first(s, v))
    assert np.allclose(got, divide_last(s, v), rtol=0, atol=1e-5)
