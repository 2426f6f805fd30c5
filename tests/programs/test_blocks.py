"""Crossing partitions: blocks against NumPy, and three ways to sum, counted."""

import ml_dtypes
import numpy as np
import pytest

import flashlib
from flashlib.machine import NC_V2, NC_V3, NC_V4, Machine, timeline
from flashlib.programs import blocks

BF16 = ml_dtypes.bfloat16


def _array(*shape, dtype=np.float32, seed=0):
    x = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return x.astype(dtype)


@pytest.mark.parametrize("n_rows", [1, 6, 127, 128, 129, 256, 300])
def test_over_partitions(n_rows):
    m, rows = Machine(), _array(n_rows, 5)
    tile = blocks.over_partitions(m, m.hbm.put(rows)).numpy()
    padded = np.zeros((-(-n_rows // 128) * 128, 5), np.float32)
    padded[:n_rows] = rows
    np.testing.assert_array_equal(tile, padded.reshape(-1, 128, 5).transpose(1, 0, 2))
    assert m.trace.bytes(src="hbm", dst="sbuf") == rows.nbytes


def test_over_partitions_with_a_column_of_ones():
    m, rows = Machine(), _array(200, 5)
    tile = blocks.over_partitions(m, m.hbm.put(rows), columns=6).numpy()
    assert (tile[:, :, 5] == 1).all()
    np.testing.assert_array_equal(tile[:72, 1, :5], rows[128:])
    assert (tile[72:, 1, :5] == 0).all()


@pytest.mark.parametrize("columns", [1, 5, 33, 128])
def test_max_and_the_way_back(columns):
    m, x = Machine(), _array(128, columns)
    top = blocks.max_over_partitions(m, m.sbuf.put(x))
    np.testing.assert_array_equal(top.numpy()[:, 0], x.max(0))
    wide = blocks.broadcast_column(m, top)
    np.testing.assert_array_equal(wide.numpy(), np.tile(x.max(0), (128, 1)))
    row = blocks.column_to_row(m, top, m.sbuf.alloc((1, columns)))
    again = blocks.broadcast_row(m, row)
    np.testing.assert_array_equal(again.numpy(), wide.numpy())
    counts = m.trace.histogram(by=("op", "engine"))
    assert counts[("nc_transpose", "tensor")] == 2
    assert counts[("nc_transpose", "vector")] == -(-columns // 32)
    assert counts[("nc_stream_shuffle", "vector")] == 4


@pytest.mark.parametrize("spec", [NC_V2, NC_V3, NC_V4], ids=lambda s: s.name)
def test_max_of_columns_with_minus_infinities(spec):
    """The transpose of NeuronCore-v2 multiplies: 0 times -inf would be NaN."""
    m, x = Machine(spec), _array(128, 5)
    x[3:, 0] = x[:127, 1] = x[:, 2] = -np.inf
    tile = m.sbuf.put(x)
    top = blocks.max_over_partitions(m, tile).numpy()[:, 0]
    np.testing.assert_array_equal(np.delete(top, 2), np.delete(x.max(0), 2))
    lowest = np.finfo(np.float32).min if spec is NC_V2 else -np.inf
    assert top[2] == lowest
    np.testing.assert_array_equal(tile.numpy(), x)
    assert m.sbuf.used == tile.nbytes // 128 + top.itemsize


def test_pieces():
    assert blocks.pieces(128) == [slice(0, 128)]
    assert [p.stop - p.start for p in blocks.pieces(300)] == [128, 128, 44]


def _exps(n_keys, columns, dtype):
    """exp(score - max), exact in float64 and rounded, spread over partitions."""
    scores = np.random.default_rng(1).standard_normal((n_keys, columns)) * 3
    exact = np.exp(scores - scores.max(0))
    rounded = exact.astype(np.float32).astype(dtype)
    spread = rounded.reshape(-1, 128, columns).transpose(1, 0, 2)
    return exact, rounded.astype(np.float64), np.ascontiguousarray(spread)


@pytest.mark.parametrize("dtype", [np.float32, BF16])
@pytest.mark.parametrize("head_dim", [64, 127])
def test_three_ways_to_sum(dtype, head_dim):
    """Counts, cycles and rounding of the variants over 2,048 keys, 8 columns."""
    n_keys, columns = 2048, 8
    n = n_keys // 128
    exact, rounded, spread = _exps(n_keys, columns, dtype)
    values = _array(n_keys, head_dim, dtype=dtype)
    passes = 4 if dtype is np.float32 else 1
    expected = {
        # products for the sum, all products, array cycles of one product
        "ones moving": (n, n, passes * min(64, columns)),
        "ones stationary": (n, n, passes * 64),
        "ones beside values": (0, n, passes * 64),
    }
    for variant, (_, products, cycles) in expected.items():
        m = Machine()
        p, beside = m.sbuf.put(spread), None
        if variant == "ones beside values":
            beside = blocks.over_partitions(m, m.hbm.put(values), columns=head_dim + 1)
        before = len(m.trace)
        sums = blocks.sum_by_matmul(m, p, variant, beside)
        own = m.trace.records[before:]
        events = timeline(m.trace).events[before:]
        of_array = [e.cycles for e in events if e.engine == "tensor"]
        assert [r.op for r in own].count("nc_matmul") == products
        assert of_array == [cycles] * products
        # the sum adds what the next product multiplies: the rounded exps
        against_rounded = np.abs(sums / rounded.sum(0) - 1).max()
        against_exact = np.abs(sums / exact.sum(0) - 1).max()
        assert against_rounded < 1e-6
        if dtype is BF16:
            assert 1e-5 < against_exact < 2**-8
        else:
            assert against_exact < 1e-6


def test_ones_beside_values_carry_the_product():
    """One pass gives V.T p and the sum: nothing more than the product alone."""
    m, n = Machine(), 3
    p, v = _array(128, n, 4), _array(128 * n, 64)
    values = blocks.over_partitions(m, m.hbm.put(v), columns=65)
    out = blocks.sum_beside_values(m, m.sbuf.put(p), values).numpy()
    flat = p.transpose(1, 0, 2).reshape(-1, 4).astype(np.float64)
    np.testing.assert_allclose(out[:64], v.T @ flat, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(out[64], flat.sum(0), rtol=1e-5, atol=1e-5)
    assert m.trace.histogram()["nc_matmul"] == n


def test_head_dim_128_leaves_no_column_for_the_ones():
    m = Machine()
    values = blocks.over_partitions(m, m.hbm.put(_array(128, 128)), columns=129)
    with pytest.raises(flashlib.FlashError):
        blocks.sum_beside_values(m, m.sbuf.put(_array(128, 1, 4)), values)


def test_more_than_128_columns_fit_only_the_stationary_ones():
    m = Machine()
    p = m.sbuf.put(_array(128, 2, 300))
    assert blocks.sum_by_matmul(m, p, "ones stationary").shape == (300,)
    with pytest.raises(flashlib.MachineError, match="300"):
        blocks.sum_by_matmul(m, p, "ones moving")


def test_variants_are_named():
    m = Machine()
    p = m.sbuf.put(_array(128, 1, 2))
    for variant, values in (("ones", None), ("ones moving", p)):
        with pytest.raises(flashlib.ArgumentError, match="ones beside values"):
            blocks.sum_by_matmul(m, p, variant, values)


def test_rounding_both_sides_of_the_fraction_helps():
    """bf16 exps in numerator and denominator beat bf16 over an exact sum, on average.

    The rounding errors of p that both share cancel in part.
    """
    shared, mixed = [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        scores = rng.standard_normal(512)
        v = rng.standard_normal((512, 64))
        p = np.exp(scores - scores.max())
        rounded = p.astype(np.float32).astype(BF16).astype(np.float64)
        want = p @ v / p.sum()
        shared.append(np.abs(rounded @ v / rounded.sum() - want).max())
        mixed.append(np.abs(rounded @ v / p.sum() - want).max())
    assert np.mean(shared) < np.mean(mixed)
