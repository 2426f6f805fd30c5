"""The one place where kernels are compiled, and the sum that it must not undo."""

from types import SimpleNamespace

import numba
import numpy as np
import pytest
from numba import prange

from flashlib.kernels import jit
from flashlib.kernels.compensation import kahan_add
from flashlib.kernels.jit import SETTINGS, inner, kernel


@pytest.fixture
def refusing(monkeypatch):
    """Let Numba raise a given message where it is asked to keep a kernel on disk."""

    def install(message):
        def njit(**settings):
            if settings["cache"]:
                raise RuntimeError(message)
            return numba.njit(**settings)

        monkeypatch.setattr(jit, "numba", SimpleNamespace(njit=njit))

    return install


@pytest.mark.parametrize("parallel", [False, True])
def test_without_a_place_on_disk_a_kernel_is_compiled_all_the_same(refusing, parallel):
    refusing("cannot cache function 'f': no locator available for file 'f.py'")

    def grow(x):
        for i in prange(len(x)):
            x[i] += 1

    compiled, x = kernel(grow, parallel=parallel), np.arange(3.0)
    compiled(x)
    assert x.tolist() == [1, 2, 3]
    assert compiled.targetoptions["parallel"] is parallel
    assert compiled.targetoptions["fastmath"] == SETTINGS["fastmath"]


def test_any_other_error_of_the_compiler_is_shown(refusing):
    refusing("the compiler is broken")
    with pytest.raises(RuntimeError, match="is broken"):
        kernel(lambda x: x)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_compensation_survives_the_permission_to_reassociate(dtype):
    @inner
    def run(x, n):
        total, compensation = x.dtype.type(1), x.dtype.type(0)
        for _ in range(n):
            total, compensation = kahan_add(total, compensation, x[0])
        return total, compensation

    @numba.njit(**{**SETTINGS, "cache": False})
    def call(x, n):
        return run(x, n)

    # Each addend alone is too small to change the sum; a thousand of them are not.
    tiny = np.array([np.finfo(dtype).eps / 8], dtype)
    assert dtype(1) + tiny[0] == 1
    total, compensation = call(tiny, 1000)
    assert total == 1 + 125 * np.finfo(dtype).eps and compensation == 0
    _, rest = call(tiny, 3)
    assert rest == 3 * tiny[0]
