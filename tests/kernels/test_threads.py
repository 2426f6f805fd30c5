"""Kernels started from several threads, from forks, and on fewer cores."""

import os
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest
from ways import same_bits

import flashlib
from flashlib.backends import blas, blocked
from flashlib.kernels import launch

COMPILED = [
    name for name in flashlib.available_backends() if name not in ("numpy", "blas")
]

SETUP = """
import numpy as np, flashlib

def inputs(seed):
    random = np.random.default_rng(seed)
    return [random.standard_normal((2, 65, n, 16), np.float32) for n in (4, 2, 2)]

def work(q, k, v):
    bits = b""
    for backend in ("pool", "blocked"):
        for result in (
            flashlib.flash_attention(q[0], k[0], v[0], causal=True, backend=backend),
            flashlib.flash_attention_decode(
                q[:, :1], k, v, cache_seqlens=[9, 65], backend=backend
            ),
            flashlib.flash_attention_varlen(
                q[0], k[0], v[0], cu_seqlens_q=[0, 9, 65], cu_seqlens_k=[0, 30, 65],
                backend=backend,
            ),
        ):
            bits += result.out.tobytes() + result.lse.tobytes()
    return bits
"""
TOGETHER = """
import threading
from concurrent.futures import ThreadPoolExecutor
barrier = threading.Barrier(4)
def once(seed):
    barrier.wait()
    return [work(*inputs(seed)) for _ in range(3)]
with ThreadPoolExecutor(4) as pool:
    answers = list(pool.map(once, range(4)))
for seed, bits in enumerate(answers):
    assert set(bits) == {work(*inputs(seed))}, seed
"""
FORK = """
import os
before = work(*inputs(1))
child = os.fork()
right = work(*inputs(1)) == before
if child == 0:
    grandchild = os.fork()
    right &= work(*inputs(2)) == work(*inputs(2))
    if grandchild == 0:
        os._exit(0 if right else 1)
    right &= os.waitstatus_to_exitcode(os.waitpid(grandchild, 0)[1]) == 0
    os._exit(0 if right else 1)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
assert right and status == 0, (right, status)
"""


def run(code, layer):
    package = Path(flashlib.__file__).parent.parent
    done = subprocess.run(
        [sys.executable, "-c", SETUP + code],
        env={
            **os.environ,
            "PYTHONPATH": str(package),
            "NUMBA_THREADING_LAYER": layer,
        },
        cwd=package,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture(params=["omp", "workqueue"])
def layer(request):
    """A pool of Numba's; one that is not installed here cannot go wrong here."""
    try:
        name = {"omp": "omppool"}.get(request.param, request.param)
        __import__(f"numba.np.ufunc.{name}")
    except ImportError:
        pytest.skip(f"no {request.param} threading layer")
    return request.param


def test_four_threads_start_kernels_at_once(layer):
    run(TOGETHER, layer)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_fork_after_a_kernel_on_all_cores(layer):
    run(FORK, layer)


@pytest.mark.parametrize("backend", COMPILED)
def test_the_number_of_threads_changes_no_bit(backend):
    random = np.random.default_rng(3)
    q, k, v = (random.standard_normal((150, n, 24), np.float32) for n in (6, 2, 2))
    results = []
    available = numba.get_num_threads()
    for n in sorted({1, available}):
        numba.set_num_threads(n)
        try:
            results.append(
                (
                    flashlib.flash_attention(q, k, v, causal=True, backend=backend),
                    flashlib.flash_attention_decode(
                        q[None, :2],
                        k[None],
                        v[None],
                        cache_seqlens=[150],
                        backend=backend,
                    ),
                )
            )
        finally:
            numba.set_num_threads(available)
    for others in results[1:]:
        for one, other in zip(results[0], others, strict=True):
            assert same_bits(one, other)


@pytest.mark.parametrize("sink", [None, np.float32([1])], ids=["plain", "sink"])
def test_the_number_of_threads_changes_no_bit_of_a_long_window(sink):
    random = np.random.default_rng(0)
    shapes = (200, 1, 16), (9000, 1, 16), (9000, 1, 16)
    call = [random.standard_normal(shape).astype(np.float32) for shape in shapes]
    available, results = numba.get_num_threads(), []
    for threads in (1, available):
        numba.set_num_threads(threads)
        try:
            results.append(
                flashlib.flash_attention(
                    *call, backend="blocked", window=(4714, 0), sink=sink
                )
            )
        finally:
            numba.set_num_threads(available)
    assert same_bits(*results)


def test_heads_side_by_side_change_no_bit():
    random = np.random.default_rng(4)
    q, k, v = (random.standard_normal((520, n, 16), np.float32) for n in (6, 2, 2))
    assert 520 * 520 * 6 >= blas.WORTH_THREADS
    mask = random.random((520, 520)) < 0.5
    one, *others = (
        flashlib.flash_attention(q, k, v, mask=mask, backend=blas.BlasBackend(n))
        for n in (1, 2, 5)
    )
    for other in others:
        assert same_bits(one, other)


def test_a_head_that_fails_is_not_swallowed(monkeypatch):
    def fail(problem, h, *arguments):
        if h == 3:
            raise MemoryError("no room for the scores")

    monkeypatch.setattr(blas, "materialize_head", fail)
    x = np.zeros((520, 4, 8), np.float32)
    with pytest.raises(MemoryError, match="no room"):
        flashlib.flash_attention(x, x, x, backend=blas.BlasBackend(2))


@pytest.mark.parametrize("seq", [40, 3000])
def test_small_work_wakes_no_thread_and_large_work_gives_the_same_bits(
    seq, monkeypatch
):
    random = np.random.default_rng(5)
    q, k, v = (random.standard_normal((1, seq, n, 32), np.float32) for n in (8, 8, 8))
    started, before = [], numba.get_num_threads()
    real = launch.numba.set_num_threads
    monkeypatch.setattr(
        launch.numba, "set_num_threads", lambda n: (started.append(n), real(n))
    )
    usual = flashlib.flash_attention_decode(q[:, :1], k, v, cache_seqlens=[seq])
    assert started == ([1, before] if seq == 40 and before > 1 else [])
    monkeypatch.setattr(blocked, "WORTH_BYTES", 0 if seq == 40 else 10**12)
    other = flashlib.flash_attention_decode(q[:, :1], k, v, cache_seqlens=[seq])
    assert same_bits(usual, other) and numba.get_num_threads() == before
