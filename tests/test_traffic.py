"""The numbers of chapters 2 and 6, counted."""

import pytest

from flashlib import traffic
from flashlib.masks import band_mask
from flashlib.traffic import ENGINE_PASSES, QWEN3_0_6B, TEXT_PASSES


def test_footprint():
    assert traffic.score_floats(511) == 261_121
    assert traffic.score_bytes(511) == 1_044_484
    assert QWEN3_0_6B.score_matrices == 448
    assert traffic.model_score_bytes(511) == 467_928_832
    assert round(traffic.score_bytes(2044) / 1e6, 1) == 16.7
    assert round(traffic.model_score_bytes(2044) / 1e9, 2) == 7.49
    assert traffic.score_bytes(2, 3, itemsize=2) == 12


def test_traffic_is_a_multiple_of_the_footprint():
    assert traffic.crossings(TEXT_PASSES) == 6
    assert traffic.crossings(ENGINE_PASSES) == 11
    assert round(traffic.model_score_traffic(511, TEXT_PASSES) / 1e9, 1) == 2.8
    assert round(traffic.model_score_traffic(511, ENGINE_PASSES) / 1e9, 1) == 5.1


@pytest.mark.parametrize("passes", (TEXT_PASSES, ENGINE_PASSES))
def test_a_matrix_is_written_before_it_is_read(passes):
    first, *middle, last = passes
    assert (first.reads, first.writes) == (0, 1)
    assert (last.reads, last.writes) == (1, 0)
    assert all(step.reads == 1 for step in middle)


def test_flash_state_does_not_know_the_length():
    assert traffic.flash_state_bytes() == (256, 512)
    assert traffic.flash_state_bytes(16, 64, 8) == (128, 512)


def test_causal_pairs():
    assert traffic.causal_pairs(511) == 130_816
    assert traffic.causal_pairs(0) == 0


@pytest.mark.parametrize("band", [(None, None), (None, 0), (3, 0), (2, 5), (0, None)])
@pytest.mark.parametrize(("seq_q", "seq_k"), [(7, 7), (3, 9), (9, 3), (0, 4), (4, 0)])
def test_visited_pairs_are_the_cells_of_the_mask(seq_q, seq_k, band):
    cells = band_mask(seq_q, seq_k, *band).sum()
    assert traffic.visited_pairs(seq_q, seq_k, *band) == cells


def test_operations_and_roofline():
    assert traffic.attention_flops(10, 2, 8) == 10 * 2 * (2 * 8 + 2 * 8)
    assert traffic.attention_flops(10, 2, 8, 4) == 10 * 2 * (2 * 8 + 2 * 4)
    nbytes = traffic.tensor_bytes(511, 511)
    assert nbytes == 4 * 511 * 128 * (16 + 8 + 8 + 16)
    assert traffic.intensity(12, 4) == 3
    assert traffic.attainable_flops(3, 100, 10) == 30
    assert traffic.attainable_flops(30, 100, 10) == 100
    assert traffic.roofline_seconds(200, 10, 100, 10) == 2
    assert traffic.roofline_seconds(100, 30, 100, 10) == 3


def test_counts_are_exact_integers():
    assert isinstance(traffic.visited_pairs(50_000, 50_000, None, 0), int)
    assert traffic.visited_pairs(50_000, 50_000, None, 0) == 50_000 * 50_001 // 2
