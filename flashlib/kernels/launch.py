"""Start parallel kernels, one at a time, in any thread and any process (chapter 7).

Numba spreads ``prange`` over a pool of threads. Not every pool that it may
find allows two Python threads to start kernels at once, so starts take turns;
the kernel inside uses all cores anyway. And a pool of GNU OpenMP does not
survive a fork: a child of a process that has already run a kernel gets the
same kernels compiled for one core.
"""

import contextlib
import functools
import os
import threading
from collections.abc import Callable, Iterator

import numba
import numpy as np

from flashlib.kernels.jit import kernel, parallel_kernel, source_stamp
from flashlib.kernels.targets import TARGETS, host_target

__all__ = ["launch", "launch_alone", "register_tile", "workers"]


# Room for panels that is kept from one call to the next: K and V of 4,096 tokens
# with 8 heads of 128 floats.
KEPT_BYTES = 32 * 2**20


class _State:
    """What a fork has to reset."""

    def __init__(self, pool_is_lost: bool = False):
        self.lock = threading.Lock()
        self.pool_started = False
        self.pool_is_lost = pool_is_lost
        self.room = np.empty(0, np.uint8)

    def lend(self, count: int, dtype: np.dtype) -> np.ndarray:
        """Return room for `count` numbers; a small one is kept for the next call.

        Fresh memory comes page by page, each filled with zeros on first touch;
        for a short sequence that takes as long as packing it.
        """
        n_bytes = count * dtype.itemsize
        room = self.room
        if room.nbytes < n_bytes:
            room = np.empty(n_bytes, np.uint8)
            if n_bytes <= KEPT_BYTES:
                self.room = room
        return room[:n_bytes].view(dtype)


_state = _State()


def _after_fork() -> None:
    global _state
    _state = _State(pool_is_lost=_state.pool_started or _state.pool_is_lost)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def workers() -> int:
    """Return how many threads the next kernel runs on."""
    return 1 if _state.pool_is_lost else numba.get_num_threads()


def register_tile(dtype: np.dtype) -> tuple[int, int]:
    """Return the rows of a panel and the lanes of a block on this processor."""
    target = TARGETS[_host()]
    return target.rows, target.vectors * target.vector_bytes // dtype.itemsize


def launch(
    build: Callable, *arguments, threads: int | None = None, room: int | None = None
) -> None:
    """Compile what `build` builds, once per process, and run it.

    Parameters
    ----------
    build : callable
        ``build(decorate, target, stamp)`` returns a compiled function.
    arguments
        What the compiled function is called with.
    threads : int, optional
        As many of the pool take part, all unless given; one alone does not wake
        the others.
    room : int, optional
        Lend the kernel an array of so many numbers, as its last argument; their
        type is that of the first one.
    """
    with _state.lock:
        parallel = not _state.pool_is_lost
        compiled = _compiled(build, _host(), parallel)
        _state.pool_started = parallel
        if room is not None:
            arguments = (*arguments, _state.lend(room, arguments[0].dtype))
        with _threads(threads):
            compiled(*arguments)


@contextlib.contextmanager
def _threads(most: int | None) -> Iterator[None]:
    """Let `most` threads take part in what starts inside."""
    before = numba.get_num_threads()
    if most is None or most >= before:
        yield
        return
    numba.set_num_threads(most)
    try:
        yield
    finally:
        numba.set_num_threads(before)


def launch_alone(build: Callable, *arguments) -> None:
    """Compile and run a kernel of one core; any number of threads may do so."""
    _compiled(build, _host(), False)(*arguments)


@functools.cache
def _host() -> int:
    return host_target()


@functools.cache
def _compiled(build: Callable, target: int, parallel: bool) -> Callable:
    # subtle: Numba's cache does not tell a parallel kernel from a serial one, so
    # the stamp has to.
    stamp = 2 * source_stamp() + parallel
    return build(parallel_kernel if parallel else kernel, target, stamp)
