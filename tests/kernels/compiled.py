"""Call from a test what only kernels call."""

import numba
import numpy as np

from flashlib.kernels.jit import SETTINGS
from flashlib.kernels.targets import TARGETS, this_target


def compiled(function):
    """Compile a caller of kernels, for this process only.

    subtle: a copy on disk would go on with the kernels of the day it was made.
    """
    settings = {**SETTINGS, "cache": False, "no_cfunc_wrapper": True}
    return numba.njit(**settings)(function)


def lanes_here(dtype, target=None):
    """Return the lanes of one vector, counted in bytes."""
    shape = TARGETS[this_target() if target is None else target]
    return shape.vector_bytes // np.dtype(dtype).itemsize


def small_integers(seed, *shape, dtype=np.float32):
    """Return whole numbers whose sums and products are exact, none of them 0."""
    random = np.random.default_rng(seed)
    return random.choice([-3, -2, -1, 1, 2, 3], shape).astype(dtype)
