"""The ring: it holds the last tokens, oldest first."""

import numpy as np
import pytest
from cache.small_caches import SIZES, tokens

from flashlib import RingCache


@pytest.mark.parametrize("window", [1, 2, 3, 5])
@pytest.mark.parametrize("chunks", [(1,) * 12, (3, 4, 5), (12,), (1, 7, 0, 4)], ids=str)
def test_a_ring_holds_the_last_tokens_oldest_first(window, chunks):
    ring, (k, v), seen = RingCache(2, window, **SIZES), tokens(2, 12), 0
    for n in chunks:
        ring.append(k[:, seen : seen + n], v[:, seen : seen + n])
        seen += n
        live = min(seen, window)
        assert ring.k.shape == (2, window, 2, 3) and ring.capacity == window
        assert np.array_equal(ring.k[:, :live], k[:, seen - live : seen])
        assert np.array_equal(ring.v[:, :live], v[:, seen - live : seen])
    assert ring.seqlens.tolist() == [12, 12]


def test_a_ring_may_be_given_views_of_itself():
    ring = RingCache(1, 4, 1, 1)
    x = np.arange(6, dtype=np.float32).reshape(1, 6, 1, 1)
    ring.append(x, x)
    ring.append(ring.k[:, ::-1], ring.v[:, ::-1])
    assert ring.k.ravel().tolist() == ring.v.ravel().tolist() == [5, 4, 3, 2]
    ring.append(x[:, :2], x[:, :2])
    assert ring.v.ravel().tolist() == [3, 2, 0, 1]
