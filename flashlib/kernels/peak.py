"""Multiply and add as fast as the registers allow, to know the ceiling (chapter 9)."""

from numba import prange

from flashlib.kernels.jit import inner
from flashlib.kernels.launch import launch, workers
from flashlib.kernels.microkernel import lanes_of, rows_of, score_panel
from flashlib.kernels.room import aligned
from flashlib.kernels.targets import register_tile

__all__ = ["count_of_flops", "run_peak"]

# Steps of the shared dimension: both operands stay in the first-level cache.
DEPTH = 128


@inner
def multiply(like, repeats, target):
    """Run the register-blocked product on the same operands again and again."""
    n_rows, n_lanes = rows_of(target), lanes_of(like, target)
    panel, lanes = aligned(n_rows * DEPTH, like), aligned(DEPTH * n_lanes, like)
    out = aligned(n_rows * n_lanes, like)
    panel[:], lanes[:] = 1, 1
    for _ in range(repeats):
        score_panel(panel, 0, lanes, 0, out, 0, DEPTH, like.dtype.type(1), target)
    return out[0]


def build_peak(decorate, target, stamp):
    """Return the kernel for one register tile, see `build_blocked`."""

    @decorate
    def peak(repeats, n_workers, results):
        for n in prange(n_workers):
            results[n] = multiply(results, repeats, target)
        return stamp

    return peak


def run_peak(results, repeats: int) -> None:
    """Run `repeats` register tiles on every core that kernels use.

    Parameters
    ----------
    results : ndarray
        One number per core, of the type to multiply; written, so that the work counts.
    repeats : int
    """
    launch(build_peak, repeats, workers(), results)


def count_of_flops(dtype, repeats: int) -> int:
    """Return the floating-point operations of :func:`run_peak` on one core."""
    rows, lanes = register_tile(dtype)
    return 2 * rows * lanes * DEPTH * repeats
