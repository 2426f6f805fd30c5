"""Start parallel kernels, one at a time, in any thread and any process (chapter 7).

Numba spreads ``prange`` over a pool of threads. Not every pool that it may
find allows two Python threads to start kernels at once, so starts take turns;
the kernel inside uses all cores anyway. And a pool of GNU OpenMP does not
survive a fork: a child of a process that has a pool already gets the same
kernels compiled for one core.
"""

import contextlib
import functools
import os
import threading
from collections.abc import Callable, Iterator

import numba

from flashlib.forks import pool_is_lost
from flashlib.kernels import targets
from flashlib.kernels.jit import kernel, source_stamp
from flashlib.kernels.room import Room

__all__ = ["launch", "launch_alone", "limit_workers", "workers"]


class _State:
    """What a fork has to reset: another thread may hold the lock, or use the room."""

    def __init__(self):
        self.lock = threading.Lock()
        self.room = Room()


_state = _State()


def _after_fork() -> None:
    global _state
    _state = _State()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def workers() -> int:
    """Return how many threads the next kernel runs on."""
    return 1 if pool_is_lost() else numba.get_num_threads()


def limit_workers(n: int) -> int:
    """Let kernels run on `n` threads at most; return how many they run on now."""
    if not pool_is_lost():
        numba.set_num_threads(min(n, numba.config.NUMBA_NUM_THREADS))
    return workers()


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
        parallel = not pool_is_lost()
        compiled = _compiled(build, targets.this_target(), parallel)
        if room is not None:
            arguments = (*arguments, _state.room.lend(room, arguments[0].dtype))
        asked = threads is not None and parallel
        fewer = asked and threads < numba.get_num_threads()
        with _threads(threads) if fewer else contextlib.nullcontext():
            compiled(*arguments)


@contextlib.contextmanager
def _threads(fewer: int) -> Iterator[None]:
    """Let fewer threads than usual take part in what starts inside."""
    before = numba.get_num_threads()
    numba.set_num_threads(fewer)
    try:
        yield
    finally:
        numba.set_num_threads(before)


def launch_alone(build: Callable, *arguments) -> None:
    """Compile and run a kernel of one core; any number of threads may do so."""
    _compiled(build, targets.this_target(), False)(*arguments)


@functools.cache
def _compiled(build: Callable, target: int, parallel: bool) -> Callable:
    # subtle: Numba's cache does not tell a parallel kernel from a serial one, so
    # the stamp has to.
    stamp = 2 * source_stamp() + parallel
    return build(functools.partial(kernel, parallel=parallel), target, stamp)
