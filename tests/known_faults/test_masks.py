"""Faults in masks, windows and tiles."""

import numpy as np
import pytest
from known_faults.near import check, close
from ways import Way, same_bits

import flashlib
from flashlib import DTypeError
from flashlib.testing import assert_accurate, make_qkv

LN2 = 0.6931472
INF, NAN = np.inf, np.nan
F, T = False, True


def test_h01_junk_in_hidden_slots(way):
    """What is hidden is not read: a weight of 0 times NaN is NaN.

    Seen in flash-attention#1745, flashinfer#941, vllm#641.
    """
    q, v = way.col(1), way.col(1, 3, NAN, INF)
    seen = {"mask": [[T, T, F, F]], "scale": 1.0}
    clean = way(q, way.col(1, 1, 0, 0), way.col(1, 3, 0, 0), **seen)
    check(clean, [2], [1.6931472])
    for junk in (NAN, INF, -INF, 1e30):
        assert same_bits(way(q, way.col(1, 1, junk, junk), v, **seen), clean)


def test_h02_fully_masked_row(way):
    """A row without keys is 0 with lse -inf, not NaN and not the mean of v.

    Seen in pytorch#103963, onnxruntime#28904.
    """
    q, k, v = way.col(1), way.col(1, 2), way.col(10, 20)
    check(way(q, k, v, mask=[[F, F]]), [0], [-INF])
    check(way(q, k, v, bias=[[-INF, -INF]]), [0], [-INF])
    q2, k2 = np.zeros((1, 2, 1), way.dtype), way.zeros(2)
    both = way(q2, k2, v, mask=[[[F, F]], [[T, T]]])
    check(both, [0, 15], [-INF, LN2])


def test_h03_causal_is_aligned_at_the_last_key(way):
    """The last query sits on the last key where the lengths differ.

    Seen in pytorch#108108, mlx#2835, onnxruntime#29020.
    """
    result = way(way.zeros(2), way.ones(5), way.col(0, 1, 2, 3, 4), causal=True)
    check(result, [1.5, 2], np.log([4, 5]))


def test_h04_window_counts_self_and_sides_do_not(way):
    """A window of w tokens counts the token itself, (left, right) does not.

    Seen in transformers#39408, vllm#3385, xformers#923.
    """

    def run(rows, window):
        v = way.col(0, 1, 2, 3, 4)
        return way(way.zeros(rows), way.ones(5), v, causal=True, window=window).out

    close(run(5, 2), [0, 0.5, 1.5, 2.5, 3.5])
    close(run(5, (2, 0)), [0, 0.5, 1, 2, 3])
    close(run(2, 2), [2.5, 3.5])
    close(run(2, (2, 0)), [2, 3])


def test_h07_low_scores_are_ordinary_numbers(way):
    """No finite number means hidden: a valid score may be lower than any.

    Seen in lattice#361, flashinfer#4267.
    """
    one = way(way.col(-20000), way.col(1, 0), way.col(1, 100), mask=[[T, F]], scale=1.0)
    assert one.out.item() == 1
    check(one, lse=[-20000])
    two = way(
        way.col(-20000, -20000), way.col(1, 0), way.col(1, 100), causal=True, scale=1.0
    )
    check(two, [1, 100], [-20000, 0])


@pytest.mark.parametrize("head_dim", (1, 3, 7, 8, 9, 63))
@pytest.mark.parametrize("backend", flashlib.available_backends())
@pytest.mark.parametrize("tile", (1, 2, 3, 5, 16, 64))
def test_h12_partial_last_tile(backend, tile, head_dim):
    """The last tile ends with the keys, not with the tile.

    Seen in jax#27224, tiny-flash-attention#12, pytorch#133717.
    """
    for seq_k in {1, tile - 1, tile, tile + 1, 2 * tile - 1, 2 * tile + 1} - {0}:
        q, k, v = make_qkv(3, seq_k + 9, head_dim=head_dim, seed=seq_k)
        k[seq_k:], v[seq_k:] = NAN, NAN
        k, v = k[:seq_k], v[:seq_k]
        result = flashlib.flash_attention(q, k, v, backend=backend, tile=tile)
        assert_accurate(result, q, k, v)


def test_h16_a_finite_bias_does_not_mask(way):
    """Only -inf hides: a bias may be as low as the lowest float.

    Seen in transformers pulls 17306 and 18185.
    """

    def run(bias):
        return way(way.zeros(1), way.ones(2), way.col(7, 9), bias=bias).out.item()

    assert run([[0.0, -INF]]) == 7
    assert run([[0.0, -3.4e38]]) == 7
    assert run([[-1e38, -1e38]]) == 8


def test_h17_a_mask_of_numbers_is_refused(way):
    """A mask is boolean; 0 and 1 as numbers would be added to the scores.

    Seen in pytorch#103963.
    """
    for dtype in (np.int32, np.uint8, np.float32):
        with pytest.raises(DTypeError, match=r"mask.*bool.*bias"):
            way(
                way.zeros(1),
                way.ones(2),
                way.col(10, 20),
                mask=np.array([[1, 0]], dtype),
            )


def test_h18_a_mask_that_broadcasts_along_the_keys(way):
    """A mask may be broadcast along every axis, the keys too.

    Seen in pytorch pull 128816.
    """
    k, v = way.ones(2), way.col(1, 3)
    check(way(way.zeros(2), k, v, mask=[[T], [F]]), [2, 0], [LN2, -INF])
    q = np.zeros((2, 2, 1), way.dtype)
    check(way(q, k, v, mask=[[[F]], [[T]]]), [[0, 2], [0, 2]])


def test_h21_a_window_over_a_whole_prompt(way):
    """A prompt longer than its window is computed whole.

    Seen in litgpt#2182, transformers#37574.
    """
    six = way(way.zeros(6), way.ones(6), way.col(*range(6)), causal=True, window=4)
    check(six, [0, 0.5, 1, 1.5, 2.5, 3.5])


def test_h23_a_bias_by_position(way):
    """A bias belongs to positions, not to numbers of rows.

    Seen in keras-hub#2861, vllm pull 945.
    """
    bias = -abs(3.0 - np.arange(4.0))[None]
    for causal in (False, True):
        result = way(
            way.zeros(1), way.ones(4), way.col(0, 1, 2, 3), bias=bias, causal=causal
        )
        check(result, [2.4926527])


@pytest.mark.parametrize("backend", flashlib.available_backends())
@pytest.mark.parametrize("dtype", (np.float32, np.float64))
@pytest.mark.parametrize(
    ("seq_q", "seq_k", "tiles"), ((2, 4100, (16, 64, 5000)), (4100, 5, (1, 2, 64)))
)
def test_h30_scratch_fits_every_tile(backend, dtype, seq_q, seq_k, tiles):
    """Scratch has the size of the tile in use, not of a usual one.

    Seen in llama.cpp#28798, llama.cpp#24912.
    """
    way = Way(backend, None, dtype)
    v, causal = way.col(*range(seq_k)), seq_k > seq_q
    want = [2049, 2049.5] if causal else np.full(seq_q, 2)
    for tile in tiles:
        result = way(way.zeros(seq_q), way.ones(seq_k), v, causal=causal, tile=tile)
        close(result.out, want, 3e-5 if dtype == np.float32 else 1e-12)
