"""The vector functions against the math library, and every vector width."""

import math

import numba
import numpy as np
import pytest
from numba.extending import intrinsic

import flashlib
from flashlib.backends.blocked import BlockedBackend
from flashlib.contract import failures
from flashlib.kernels import targets
from flashlib.kernels.exp2 import COEFFICIENTS, emit_exp, emit_tanh
from flashlib.kernels.targets import TARGETS, host_target
from flashlib.kernels.vectors import INT, Vectors
from flashlib.testing import assert_accurate, make_qkv, oracle


def elementwise(emit):
    """Compile one of the emitted functions as a loop over an array."""

    @intrinsic
    def over(typingctx, x):
        signature = numba.types.void(x)

        def codegen(context, builder, signature, args):
            vectors = Vectors(context, builder, x.dtype, TARGETS[host_target()])
            data = vectors.pointer(x, args[0], INT(0))
            size = context.make_array(x)(context, builder, args[0]).nitems

            def step(n, carried):
                place = builder.mul(n, INT(vectors.lanes))
                vectors.store(emit(vectors, vectors.load(data, place)), data, place)
                return carried

            vectors.loop(builder.sdiv(size, INT(vectors.lanes)), [], step)
            return context.get_dummy_value()

        return signature, codegen

    @numba.njit(fastmath={"contract", "reassoc", "nsz", "arcp", "afn"})
    def run(x):
        over(x)

    def apply(x):
        padded = np.concatenate([x, np.zeros(-len(x) % 64, x.dtype)])
        run(padded)
        return padded[: len(x)]

    return apply


vector_exp, vector_tanh = elementwise(emit_exp), elementwise(emit_tanh)
dtypes = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def units(got, want):
    """Errors in units of the last place of the wanted numbers."""
    return np.abs(got.astype(np.longdouble) - want) / np.spacing(want.astype(got.dtype))


@dtypes
def test_exp_is_within_two_units(dtype):
    lowest = -86.9 if dtype == np.float32 else -707.9
    x = np.concatenate([np.linspace(lowest, 0, 200_001), -np.logspace(-40, 1, 10_001)])
    x = x.astype(dtype)
    want = np.exp(x.astype(np.longdouble))
    assert units(vector_exp(x), want).max() <= 2


@dtypes
def test_exp_where_it_must_be_exact(dtype):
    x = np.array([0.0, -0.0, -np.inf, -1e4, -3e38, np.nan, -1e-45], dtype)
    got = vector_exp(x)
    assert got[:2].tolist() == [1, 1] and got[6] == 1
    assert got[2:5].tolist() == [0, 0, 0] and not np.signbit(got[2:5]).any()
    assert np.isnan(got[5])


@dtypes
def test_exp_is_whole_down_to_its_lowest_argument_and_0_below(dtype):
    lowest = dtype(-87 if dtype == np.float32 else -708)
    x = np.linspace(lowest, lowest + dtype(0.5), 1001, dtype=dtype)
    assert units(vector_exp(x), np.exp(x.astype(np.longdouble))).max() <= 2
    below = np.nextafter(lowest, -dtype(np.inf))
    assert vector_exp(np.array([below], dtype)).tolist() == [0]


@dtypes
def test_exp_never_rises_above_one_and_never_falls(dtype):
    x = np.linspace(-3, 0, 100_001).astype(dtype)
    got = vector_exp(x)
    assert got.max() == 1 and got.min() > 0
    # Neighbors may tie or swap by a rounding, never by more.
    assert (np.diff(got) >= -2 * np.spacing(got[1:])).all()


@dtypes
def test_nan_of_any_payload_stays_nan(dtype):
    kind = np.uint32 if dtype == np.float32 else np.uint64
    quiet = np.array([np.nan], dtype).view(kind)[0]
    bits = quiet + np.arange(1, 2000, dtype=kind) * kind(3)
    assert np.isnan(vector_exp(bits.view(dtype))).all()
    assert np.isnan(vector_tanh(bits.view(dtype))).all()


@dtypes
def test_tanh_is_within_four_units(dtype):
    x = np.concatenate([np.linspace(-12, 12, 100_001), np.logspace(-30, 1, 10_001)])
    x = x[x != 0].astype(dtype)
    want = np.tanh(x.astype(np.longdouble))
    assert units(vector_tanh(x), want).max() <= 4
    ends = np.array([np.inf, -np.inf, 0, 1e30], dtype)
    assert vector_tanh(ends).tolist() == [1, -1, 0, 1]


def test_the_polynomials_are_as_good_as_they_say():
    # Rounded to float64, the coefficients themselves are off by up to 6e-17.
    f = np.linspace(-0.5, 0.5, 10_001, dtype=np.longdouble)
    for bits, error in ((32, 2.7e-9), (64, 4e-17)):
        q = np.polynomial.polynomial.polyval(f, np.longdouble(COEFFICIENTS[bits]))
        assert float(np.abs((1 + f * q) / np.exp2(f) - 1).max()) < error


@pytest.mark.parametrize(
    "features, name",
    [
        ({"avx512f": True, "avx2": True, "fma": True}, "avx512"),
        ({"avx512f": False, "avx2": True, "fma": True}, "avx2"),
        ({"avx2": True, "fma": False}, "plain"),
        ({"neon": True}, "neon"),
        ({}, "plain"),
    ],
)
def test_the_width_follows_the_processor(features, name):
    assert TARGETS[host_target(features)].name == name


def test_register_tiles_fit_their_registers():
    for target in TARGETS:
        registers = 32 if target.name in ("neon", "avx512") else 16
        used = target.rows * target.vectors + target.vectors + 1
        assert used <= registers, target
        assert math.log2(target.rows).is_integer()


@pytest.mark.parametrize("target", range(len(TARGETS)), ids=[t.name for t in TARGETS])
def test_every_width_is_right(monkeypatch, target):
    """Any processor compiles any width; only the speed is another."""
    monkeypatch.setattr(targets, "this_target", lambda: target)
    backend = BlockedBackend()

    def attention(q, k, v, **options):
        return flashlib.flash_attention(q, k, v, backend=backend, **options)

    assert failures(attention) == {}
    for head_dim, head_dim_v in ((1, 3), (8, 8), (17, 63), (128, 72)):
        q, k, v = make_qkv(
            50, 70, n_heads=6, head_dim=head_dim, head_dim_v=head_dim_v, seed=target
        )
        options = {"causal": True, "softcap": 3.0}
        assert_accurate(attention(q, k, v, **options), q, k, v, **options)
        got = flashlib.flash_attention_decode(
            q[None, -2:],
            k[None],
            v[None],
            cache_seqlens=[70],
            softcap=3.0,
            num_splits=3,
            backend=backend,
        )
        want = oracle(q[-2:], k, v, **options)
        np.testing.assert_allclose(got.out[0], want.out, atol=2e-6)
        np.testing.assert_allclose(got.lse[0], want.lse, atol=4e-6)
