"""Keep NaN and infinity away from lanes that do not attend them (chapter 9).

A weight of 0 hides a value only if the value is finite: ``0 * NaN`` is NaN, and so
is ``0 * inf``. So kernels that multiply whole tiles put 0 where a value is not
finite, and add such a value in a pass of its own, to the lanes that attend it.
"""

import numpy as np

from flashlib.kernels.jit import inner

__all__ = ["add_nonfinite", "all_finite", "clear_nonfinite"]


@inner
def all_finite(row):
    """Whether no number of a row is NaN or infinite."""
    zero, probe = row.dtype.type(0), row.dtype.type(0)
    for d in range(row.size):
        # 0 * x is NaN for every x that is not finite, and so is then the sum.
        probe += row[d] * zero
    return probe == zero


@inner
def clear_nonfinite(row):
    """Set what is not finite to 0."""
    infinity = row.dtype.type(np.inf)
    for d in range(row.size):
        if not abs(row[d]) < infinity:
            row[d] = 0


@inner
def add_nonfinite(acc, at, step, p, row):
    """Add ``p * row[d]`` to ``acc[at + d * step]`` where ``row[d]`` is not finite."""
    infinity = row.dtype.type(np.inf)
    for d in range(row.size):
        if not abs(row[d]) < infinity:
            acc[at + d * step] += p * row[d]
