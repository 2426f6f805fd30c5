"""The loops over rows, run by Python itself: the same source, no compiler."""

import os
import subprocess
import sys

import pytest

UNCOMPILED = """
import sys, numpy as np, flashlib
from flashlib.testing import assert_accurate, make_qkv
q, k, v = make_qkv(7, 9, n_heads=2, n_kv_heads=1, head_dim=6)
random = np.random.default_rng(0)
for options in (
    {"causal": True},
    {"window": (2, 1), "softcap": 2.0, "sink": np.zeros(2)},
    {"mask": random.random((2, 7, 9)) < 0.4, "bias": random.standard_normal((7, 9))},
):
    result = flashlib.flash_attention(q, k, v, backend=sys.argv[1], tile=2, **options)
    assert_accurate(result, q, k, v, **options)
"""


@pytest.mark.parametrize("backend", ["scalar", "simd"])
def test_the_rows_are_right_without_the_compiler(backend):
    pytest.importorskip("numba")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", UNCOMPILED, backend],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
