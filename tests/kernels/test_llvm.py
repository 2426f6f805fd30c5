"""What the compiler made of the kernels: no hidden float64, no stray settings."""

import re

import numba
import numpy as np
import pytest

import flashlib
from flashlib.kernels import blocked, decode
from flashlib.kernels.jit import SETTINGS
from flashlib.kernels.launch import _compiled
from flashlib.kernels.targets import TARGETS, host_target, this_target

DOUBLE = re.compile(r"\bdouble\b")
BUILDS = {"blocked": blocked.build_blocked, "decode": decode.build_decode}


@pytest.fixture(scope="module")
def texts():
    """The LLVM text of every kernel, compiled for one core, in float32."""
    return {name: compiled_text(build) for name, build in BUILDS.items()}


def compiled_text(build):
    found = {}

    def uncached(function):
        found["kernel"] = numba.njit(**{**SETTINGS, "cache": False})(function)
        return found["kernel"]

    def compile_instead(builder, *arguments, threads=None, room=None):
        panels = () if room is None else (np.empty(room, np.float32),)
        builder(uncached, host_target(), 0)(*arguments, *panels)

    x = np.ones((3, 2, 8), np.float32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("flashlib.backends.blocked.launch", compile_instead)
        if build is blocked.build_blocked:
            flashlib.flash_attention(x, x, x, backend="blocked")
        else:
            flashlib.flash_attention_decode(
                x[None, :1], x[None], x[None], cache_seqlens=[3], backend="blocked"
            )
    (text,) = found["kernel"].inspect_llvm().values()
    return text


@pytest.mark.parametrize("name", BUILDS)
def test_float32_stays_float32(texts, name):
    bodies = texts[name].split("\ndefine ")
    # The wrapper for callers in Python unpacks their floats, which are float64.
    own = [body for body in bodies[1:] if "cpython" not in body.partition("{")[0]]
    assert len(own) > 0
    lines = "\n".join(body.partition("\n}")[0] for body in own).splitlines()
    assert [line for line in lines if DOUBLE.search(line)] == []


@pytest.mark.parametrize("name", BUILDS)
def test_the_vectors_are_there(texts, name):
    target = TARGETS[host_target()]
    if not target.fused:
        pytest.skip("this processor multiplies and adds in two steps")
    assert f"<{target.vector_bytes // 4} x float> @llvm.fma" in texts[name]


def test_the_guards_are_not_permitted_away():
    assert SETTINGS["fastmath"].isdisjoint({"nnan", "ninf", "fast"})


def test_a_kernel_is_compiled_once_per_type():
    build = BUILDS["blocked"]
    x = np.ones((5, 2, 8), np.float32)
    flashlib.flash_attention(x, x, x, backend="blocked")
    compiled = _compiled(build, this_target(), True)
    before = len(compiled.signatures)
    for other in (x[::-1], np.asfortranarray(x), x[:, :, ::-1]):
        flashlib.flash_attention(other, other, other, backend="blocked", causal=True)
        mask = np.ones((1, 5), bool)
        flashlib.flash_attention(other, x, x, backend="blocked", mask=mask)
    assert len(compiled.signatures) == before
