"""Share work between threads, without a lock (chapters 7, 9)."""

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from flashlib.kernels.jit import inner

__all__ = ["counters", "fetch_add"]


@intrinsic
def fetch_add(typingctx, counter):
    """Return ``counter[0]`` and add 1 to it, in one step that no thread can split.

    What a thread wrote before is visible to whoever counts after it.
    """
    signature = types.int64(counter)

    def codegen(context, builder, signature, args):
        place = context.make_array(counter)(context, builder, args[0]).data
        one = ir.Constant(ir.IntType(64), 1)
        return builder.atomic_rmw("add", place, one, "acq_rel")

    return signature, codegen


@inner
def counters(n):
    """Return `n` counters at 0.

    subtle: written as ``np.zeros`` inside a parallel kernel, Numba would start
    all threads to do it.
    """
    zeros = np.empty(n, np.int64)
    for i in range(n):
        zeros[i] = 0
    return zeros
