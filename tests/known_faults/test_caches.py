"""Faults in caches: appends, rings and rollbacks."""

import numpy as np
import pytest
from known_faults.near import backends, close, row, splits
from ways import same_bits

import flashlib
from flashlib import CapacityError, ContiguousCache, PagedCache, RingCache


def test_h20_an_append_lands_in_the_next_slots():
    """An append fills the next slots, or changes nothing and says why.

    Seen in flash-attention#772.
    """
    cache = ContiguousCache(1, 8, 1, 1)
    cache.append(row(1, 2, 3), row(1, 2, 3))
    cache.append(row(4, 5), row(4, 5))
    assert cache.v.ravel().tolist() == [1, 2, 3, 4, 5, 0, 0, 0]
    paged = PagedCache(1, 4, 2, 1, 1)
    paged.append(row(1, 2, 3), row(1, 2, 3))
    paged.append(row(4, 5), row(4, 5))
    assert paged.block_table[0].tolist() == [0, 1, 2, -1]
    assert paged.v[:3].reshape(3, 2).tolist() == [[1, 2], [3, 4], [5, 0]]
    cache.append(row(6, 7), row(6, 7))
    before = cache.k.tobytes(), cache.v.tobytes(), cache.seqlens.tolist()
    with pytest.raises(CapacityError, match="expected at most 1"):
        cache.append(row(8, 9), row(8, 9))
    assert before == (cache.k.tobytes(), cache.v.tobytes(), cache.seqlens.tolist())


@backends
def test_h21_a_ring_keeps_the_last_window(backend):
    """A ring that wraps holds the last tokens, all of them.

    Seen in litgpt#2182, transformers#37574.
    """
    ring = RingCache(1, 4, 1, 1)
    for token in range(6):
        ring.append(row(0), row(token))
        live = np.minimum(ring.seqlens, ring.capacity)
        got = flashlib.flash_attention_decode(
            row(0), ring.k, ring.v, cache_seqlens=live, backend=backend
        )
        close(got.out, np.mean(range(max(token - 3, 0), token + 1)))
    assert ring.seqlens.tolist() == [6]


@backends
@splits
def test_h22_a_rollback_leaves_no_trace(backend, num_splits):
    """Tokens that were taken back leave no trace, in no row.

    Seen in mlx-lm pulls 1109 and 1427.
    """
    random = np.random.default_rng(22)

    def tokens(n):
        return random.standard_normal((2, 2, n, 1, 4)).astype(np.float32)

    prompt, guesses, query = tokens(5), tokens(3), tokens(1)[0]
    cache, clean = (PagedCache(2, 12, 2, 1, 4) for _ in range(2))
    for each, seen in ((cache, 3), (clean, 1)):
        each.append(*prompt)
        each.truncate(0, 3)
        each.append(*guesses[:, :, :seen])
    assert cache.seqlens.tolist() == [6, 8]
    cache.truncate(0, 4)
    assert cache.seqlens.tolist() == [4, 8] and clean.seqlens.tolist() == [4, 6]

    def last(each, b):
        return flashlib.flash_attention_paged(
            query[b : b + 1],
            each.k,
            each.v,
            block_table=each.block_table[b : b + 1],
            cache_seqlens=each.seqlens[b : b + 1],
            num_splits=num_splits,
            backend=backend,
        )

    assert same_bits(last(cache, 0), last(clean, 0))
