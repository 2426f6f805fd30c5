"""Query rows as lanes: which row a lane is, what it may see, where it is stored."""

import numpy as np
import pytest
from kernels.compiled import compiled

from flashlib.kernels.lanes import (
    Rules,
    Segment,
    add_bias,
    add_sinks,
    hide_edges,
    hide_masked,
    load_queries,
    start_state,
    store_rows,
)
from flashlib.kernels.targets import TARGETS, this_target
from flashlib.kernels.tile_step import Scratch
from flashlib.problem import attention_problem

HERE = this_target()
GROUP, KV_HEAD, N_HEADS = 3, 1, 6
DTYPE = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def lanes_of(dtype):
    shape = TARGETS[HERE]
    return shape.vectors * shape.vector_bytes // np.dtype(dtype).itemsize


@compiled
def load(q, segment, first, scratch, at):
    load_queries(q, segment, first, scratch, at, HERE)


@compiled
def start(segment, rules, first, scratch, at, lanes):
    start_state(segment, rules, first, scratch, at, lanes)


@compiled
def sinks(segment, rules, first, scratch, at, lanes):
    add_sinks(segment, rules, first, scratch, at, lanes)


@compiled
def edges(s, k_first, n_keys, lo, hi, at, lanes):
    hide_edges(s, k_first, n_keys, lo, hi, at, lanes)


@compiled
def data(segment, mask, bias, first, s, k_first, n_keys, lanes):
    add_bias(segment, bias, first, s, k_first, n_keys, lanes)
    hide_masked(segment, mask, first, s, k_first, n_keys, lanes)


@compiled
def store(segment, rules, first, scratch, at, wide, out, lse):
    store_rows(segment, rules, first, scratch, at, wide, out, lse, HERE)


def segment_of(seq_q, seq_k=20, q_start=2):
    return Segment(q_start, seq_q, 1, seq_k, KV_HEAD, GROUP, 0)


def rules_of(dtype, left=100, right=100, mask=None, sink=None):
    nothing = np.full(N_HEADS, -np.inf, dtype)
    return Rules(
        np.empty((0, 0, 0), bool) if mask is None else mask,
        np.empty((0, 0, 0), dtype),
        nothing if sink is None else sink.astype(dtype),
        dtype(1),
        dtype(0),
        left,
        right,
    )


def scratch_of(dtype, width):
    """Return room for two blocks, every number of it 9 and every bound -9."""
    lanes = lanes_of(dtype)

    def numbers(n):
        return np.full(n, 9, dtype)

    two = 2 * lanes
    past = numbers(two * width), numbers(two), numbers(two)
    return Scratch(
        numbers(two * width),
        numbers(4 * lanes),
        numbers(two * width),
        *(numbers(two) for _ in range(4)),
        past,
        np.full(two, -9),
        np.full(two, -9),
        np.zeros(lanes, np.int64),
        numbers(width),
    )


def row_and_head(lane):
    return lane // GROUP, KV_HEAD * GROUP + lane % GROUP


@DTYPE
@pytest.mark.parametrize("head_dim", [1, 7, 17])
@pytest.mark.parametrize("first", [0, 5])
def test_a_block_holds_its_rows_as_columns_and_zeros_behind_them(
    dtype, head_dim, first
):
    lanes = lanes_of(dtype)
    seq_q = (first + lanes) // GROUP - 1  # some lanes have no row
    random = np.random.default_rng(head_dim)
    q = random.standard_normal((2 * seq_q + 9, N_HEADS, head_dim + 1)).astype(dtype)
    q = q[::2, :, 1:]
    scratch = scratch_of(dtype, head_dim)
    load(q, segment_of(seq_q), first, scratch, lanes)
    untouched, block = scratch.q.reshape(2, head_dim, lanes)
    assert (untouched == 9).all()
    for lane in range(lanes):
        row, head = row_and_head(first + lane)
        want = q[2 + row, head] if row < seq_q else np.zeros(head_dim)
        np.testing.assert_array_equal(block[:, lane], want)


@pytest.mark.parametrize("band", [(None, None), (4, 0), (2, 3), (0, 0)])
@pytest.mark.parametrize("seq_q, seq_k", [(9, 20), (20, 9), (1, 1)])
def test_a_lane_sees_the_keys_of_its_row(seq_q, seq_k, band):
    lanes, first = lanes_of(np.float32), 4
    x, y = np.zeros((seq_q, 1, 1), np.float32), np.zeros((seq_k, 1, 1), np.float32)
    problem, _ = attention_problem(x, y, y, window=None if band[0] is None else band)
    sink = np.arange(N_HEADS)
    rules = rules_of(np.float32, *problem.reach, sink=sink)
    scratch = scratch_of(np.float32, 1)
    start(segment_of(seq_q, seq_k), rules, first, scratch, lanes, lanes)
    for lane in range(lanes):
        row, head = row_and_head(first + lane)
        found = scratch.lo[lanes + lane], scratch.hi[lanes + lane]
        assert found == problem.kv_range(min(row, seq_q - 1))
        assert scratch.m[lanes + lane] == sink[head] and scratch.l[lanes + lane] == 0
    assert (scratch.lo[:lanes] == -9).all() and (scratch.m[:lanes] == 9).all()


def test_a_sink_weighs_what_its_head_says():
    dtype = np.float32
    lanes, sink = lanes_of(dtype), np.array([9, 9, 9, 0.5, -np.inf, 2])
    scratch = scratch_of(dtype, 1)
    scratch.m[:], scratch.l[:] = 2, 1
    sinks(segment_of(20), rules_of(dtype, sink=sink), 1, scratch, lanes, lanes)
    heads = np.array([row_and_head(1 + lane)[1] for lane in range(lanes)])
    assert (scratch.l[:lanes] == 1).all()
    want = 1 + np.exp(sink[heads] - 2)
    np.testing.assert_allclose(scratch.l[lanes:], want, rtol=1e-6)


@pytest.mark.parametrize("k_first", [0, 3, 8])
def test_scores_outside_the_bounds_of_a_lane_are_hidden(k_first):
    dtype = np.float32
    lanes, n_keys = lanes_of(dtype), 7
    lo, hi = np.full(2 * lanes, -9), np.full(2 * lanes, -9)
    lo[lanes:] = np.arange(lanes) * 8 // lanes
    hi[lanes:] = lo[lanes:] + 5
    s = np.ones(((n_keys + 1), lanes), dtype)
    edges(s.ravel(), k_first, n_keys, lo, hi, lanes, lanes)
    j = k_first + np.arange(n_keys)[:, None]
    visible = (lo[lanes:] <= j) & (j < hi[lanes:])
    assert not visible.all() and visible.any()
    np.testing.assert_array_equal(s[:-1], np.where(visible, dtype(1), -np.inf))
    assert (s[-1] == 1).all()


@pytest.mark.parametrize("shape", [(1, 1, 20), (6, 1, 1), (1, 9, 1), (6, 9, 20)])
def test_bias_and_mask_are_those_of_head_row_and_key(shape):
    dtype = np.float32
    lanes, seq_q, first, k_first, n_keys = lanes_of(dtype), 9, 4, 11, 5
    random = np.random.default_rng(0)
    bias = random.integers(1, 9, shape).astype(dtype)
    bias.flat[::5] = -np.inf
    mask = random.random(shape) < 0.6
    s = np.full((n_keys + 1, lanes), 100, dtype)
    s[:n_keys, 0] = np.nan  # -inf hides that too
    want = s.copy()
    full_bias = np.broadcast_to(bias, (N_HEADS, seq_q, 20))
    full_mask = np.broadcast_to(mask, (N_HEADS, seq_q, 20))
    for lane in range(lanes):
        row, head = row_and_head(first + lane)
        cells = head, min(row, seq_q - 1), slice(k_first, k_first + n_keys)
        hidden = ~full_mask[cells] | (full_bias[cells] == -np.inf)
        total = want[:n_keys, lane] + full_bias[cells]
        want[:n_keys, lane] = np.where(hidden, -np.inf, total)
    data(segment_of(seq_q), mask, bias, first, s.ravel(), k_first, n_keys, lanes)
    np.testing.assert_array_equal(s, want)


@DTYPE
@pytest.mark.parametrize("width", [1, 5, 17])
def test_finished_rows_go_where_their_lane_says(dtype, width):
    lanes, first, wide = lanes_of(dtype), 4, width + 2
    seq_q = (first + lanes) // GROUP  # some lanes have no row
    random = np.random.default_rng(width)
    scratch = scratch_of(dtype, wide)
    scratch.acc[:] = random.standard_normal(scratch.acc.size)
    scratch.m[:], scratch.l[:] = 3, 2
    # One row sees keys that weigh nothing, one sees a key that the mask hides, and
    # one sees none at all.
    scratch.lo[:], scratch.hi[:] = 0, 1
    without = {name: lanes + n for n, name in enumerate(("weight", "mask", "keys"))}
    scratch.l[list(without.values())] = 0
    scratch.hi[without["keys"]] = 0
    acc = scratch.acc.reshape(2, wide, lanes)[1]
    acc[:, :3] = 0
    row, head = row_and_head(first + 1)
    mask = np.ones((N_HEADS, seq_q, 20), bool)
    mask[head, row, 0] = False
    out = np.full((seq_q + 4, N_HEADS, width), 7, dtype)
    lse = np.full((seq_q + 4, N_HEADS), 7, dtype)
    want_out, want_lse = out.copy(), lse.copy()
    for lane in range(lanes):
        row, head = row_and_head(first + lane)
        if row < seq_q:
            want_out[2 + row, head] = acc[:width, lane] if lane else np.nan
            want_lse[2 + row, head] = 3 + np.log(2) if lane > 2 else -np.inf
    store(
        segment_of(seq_q), rules_of(dtype, mask=mask), first, scratch, lanes, wide,
        out, lse,
    )  # fmt: skip
    np.testing.assert_array_equal(out, want_out)
    np.testing.assert_allclose(lse, want_lse, rtol=1e-6)
