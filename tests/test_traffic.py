"""Bytes, pairs and operations against arrays that have them and loops that count."""

import numpy as np
import pytest

from flashlib import traffic
from flashlib.masks import band_mask
from flashlib.traffic import ENGINE_PASSES, QWEN3_0_6B, TEXT_PASSES, Geometry

SMALL = Geometry(layers=3, n_heads=4, n_kv_heads=2, head_dim=5)
both_paths = pytest.mark.parametrize("passes", (TEXT_PASSES, ENGINE_PASSES))


@pytest.mark.parametrize("dtype", (np.float16, np.float32, np.float64))
@pytest.mark.parametrize(("seq_q", "seq_k"), [(7, 7), (2, 3), (0, 4)])
def test_a_matrix_has_the_size_of_an_array(seq_q, seq_k, dtype):
    scores = np.empty((seq_q, seq_k), dtype)
    assert traffic.score_floats(seq_q, seq_k) == scores.size
    assert traffic.score_bytes(seq_q, seq_k, scores.itemsize) == scores.nbytes


def test_a_model_has_a_matrix_per_layer_and_query_head():
    one = np.empty((6, 6), np.float32)
    every = [one for _ in range(SMALL.layers) for _ in range(SMALL.n_heads)]
    assert SMALL.score_matrices == len(every)
    assert traffic.model_score_bytes(6, SMALL) == sum(x.nbytes for x in every)


def test_the_model_of_the_chapters_at_both_lengths():
    assert QWEN3_0_6B.score_matrices == 448
    assert round(traffic.score_bytes(2044) / 1e6, 1) == 16.7
    assert round(traffic.model_score_bytes(2044) / 1e9, 2) == 7.49


@both_paths
def test_traffic_is_every_element_in_every_pass(passes):
    moved = 0
    for step in passes:
        for _ in np.ndindex(SMALL.layers, SMALL.n_heads, 6, 6):
            moved += 4 * step.reads + 4 * step.writes
    assert traffic.model_score_traffic(6, passes, SMALL) == moved


@both_paths
def test_a_matrix_is_written_before_it_is_read(passes):
    first, *middle, last = passes
    assert (first.reads, first.writes) == (0, 1)
    assert (last.reads, last.writes) == (1, 0)
    assert all(step.reads == 1 for step in middle)


def test_flash_state_is_a_tile_of_scores_and_a_row_of_the_result():
    scores, acc = np.empty(16, np.float64), np.empty(64, np.float64)
    assert traffic.flash_state_bytes(16, 64, 8) == (scores.nbytes, acc.nbytes)


@pytest.mark.parametrize("seq", [0, 1, 2, 31])
def test_causal_pairs_are_those_of_a_triangle(seq):
    pairs = [(i, j) for i in range(seq) for j in range(seq) if j <= i]
    assert traffic.causal_pairs(seq) == len(pairs)


@pytest.mark.parametrize("band", [(None, None), (None, 0), (3, 0), (2, 5), (0, None)])
@pytest.mark.parametrize(("seq_q", "seq_k"), [(7, 7), (3, 9), (9, 3), (0, 4), (4, 0)])
def test_visited_pairs_are_the_cells_of_the_mask(seq_q, seq_k, band):
    cells = band_mask(seq_q, seq_k, *band).sum()
    assert traffic.visited_pairs(seq_q, seq_k, *band) == cells


@pytest.mark.parametrize(("width", "width_v"), [(8, None), (8, 4), (1, 3), (2, 0)])
def test_every_pair_multiplies_and_adds_once_per_column(width, width_v):
    pairs, n_heads, count = 10, 2, 0
    for _ in np.ndindex(n_heads, pairs):
        for _ in range(width):
            count += 2  # of q and k: multiply, add to the score
        for _ in range(width if width_v is None else width_v):
            count += 2  # of p and v: multiply, add to the numerator
    assert traffic.attention_flops(pairs, n_heads, width, width_v) == count


def test_tensors_are_counted_once_each():
    q = out = np.empty((7, SMALL.n_heads, SMALL.head_dim), np.float16)
    k = v = np.empty((9, SMALL.n_kv_heads, SMALL.head_dim), np.float16)
    nbytes = sum(x.nbytes for x in (q, k, v, out))
    assert traffic.tensor_bytes(7, 9, SMALL, itemsize=2) == nbytes


@pytest.mark.parametrize(("flops", "nbytes"), [(200, 10), (100, 30), (100, 10)])
def test_the_roof_and_the_least_time_agree(flops, nbytes):
    machine = {"peak_flops": 100, "bandwidth": 10}
    roof = traffic.attainable_flops(traffic.intensity(flops, nbytes), **machine)
    seconds = traffic.roofline_seconds(flops, nbytes, **machine)
    assert seconds == pytest.approx(flops / roof)
    assert roof <= 100 and nbytes / seconds <= 10
    assert roof == 100 or nbytes / seconds == 10  # one of the two is what binds


def test_counts_are_exact_integers():
    assert isinstance(traffic.visited_pairs(50_000, 50_000, None, 0), int)
    assert traffic.visited_pairs(50_000, 50_000, None, 0) == 50_000 * 50_001 // 2
