"""Kernels that have no vectors of their own, run by Python itself: the same source."""

import os
import subprocess
import sys

import pytest

UNCOMPILED = """
import sys, numpy as np, flashlib
from flashlib.kernels import threads
from flashlib.testing import assert_accurate, make_qkv

def fetch_add(counter):
    counter[0] += 1
    return counter[0] - 1

# one instruction of the machine, which Python has not; here is one thread only
threads.fetch_add = fetch_add
from flashlib.backends.tiles import TilesBackend

backend = TilesBackend() if sys.argv[1] == "tiles" else sys.argv[1]
q, k, v = make_qkv(7, 9, n_heads=2, n_kv_heads=1, head_dim=6)
random = np.random.default_rng(0)
for options in (
    {"causal": True},
    {"window": (2, 1), "softcap": 2.0, "sink": np.zeros(2)},
    {"mask": random.random((2, 7, 9)) < 0.4, "bias": random.standard_normal((7, 9))},
):
    result = flashlib.flash_attention(q, k, v, backend=backend, tile=2, **options)
    assert_accurate(result, q, k, v, **options)
"""


@pytest.mark.parametrize("backend", ["scalar", "simd", "pool", "tiles"])
def test_kernels_are_right_without_the_compiler(backend):
    pytest.importorskip("numba")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", UNCOMPILED, backend],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
