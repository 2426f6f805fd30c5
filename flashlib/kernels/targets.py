"""Know the vectors of a processor: how wide, how many registers (chapter 9).

A register-blocked product holds a tile of its result in registers. How large
that tile can be follows from the number of vector registers: `rows * vectors`
accumulators, `vectors` operands and one broadcast value must fit. 4 x 3 fills
the 16 registers of AVX2 exactly; 8 x 3 leaves 4 of 32 free.
"""

import functools
from typing import NamedTuple

import llvmlite.binding
import numpy as np

__all__ = [
    "TARGETS",
    "Target",
    "host_target",
    "register_tile",
    "target_index",
    "this_target",
]


class Target(NamedTuple):
    """The shape of a register tile.

    Attributes
    ----------
    name : str
        Instruction set.
    vector_bytes : int
        Width of one vector register.
    rows, vectors : int
        The tile: `rows` results high, `vectors` registers wide.
    fused : bool
        Whether one instruction multiplies and adds.
    """

    name: str
    vector_bytes: int
    rows: int
    vectors: int
    fused: bool


TARGETS = (
    Target("plain", 16, 4, 3, False),
    Target("neon", 16, 8, 3, True),
    Target("avx2", 32, 4, 3, True),
    Target("avx512", 64, 8, 3, True),
)


def target_index(name: str) -> int:
    """Return the place of a target in `TARGETS`; kernels are compiled per place."""
    return [target.name for target in TARGETS].index(name)


def host_target(features: dict[str, bool] | None = None) -> int:
    """Return the index of the widest target that this processor runs well.

    Parameters
    ----------
    features : dict, optional
        Feature flags by LLVM name; default: those of the host.

    Examples
    --------
    >>> TARGETS[host_target({"avx2": True, "fma": True})].name
    'avx2'
    >>> TARGETS[host_target({"sse2": True})].name
    'plain'
    """
    if features is None:
        features = dict(llvmlite.binding.get_host_cpu_features())
    if features.get("avx512f"):
        return target_index("avx512")
    if features.get("avx2") and features.get("fma"):
        return target_index("avx2")
    if features.get("neon") or features.get("fp-armv8"):
        return target_index("neon")
    return target_index("plain")


@functools.cache
def this_target() -> int:
    """Return :func:`host_target` of the host, asked once per process."""
    return host_target()


def register_tile(dtype: np.dtype) -> tuple[int, int]:
    """Return the rows of a panel and the lanes of a block on this processor."""
    target = TARGETS[this_target()]
    return target.rows, target.vectors * target.vector_bytes // dtype.itemsize
