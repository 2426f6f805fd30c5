"""Start parallel kernels, one at a time, in any thread and any process (chapter 7).

Numba spreads ``prange`` over a pool of threads. Not every pool that it may
find allows two Python threads to start kernels at once, so starts take turns;
the kernel inside uses all cores anyway. And a pool of GNU OpenMP does not
survive a fork: a child of a process that has already run a kernel gets the
same kernels compiled for one core.
"""

import functools
import os
import threading
from collections.abc import Callable

import numba

from flashlib.kernels.jit import kernel, parallel_kernel, source_stamp
from flashlib.kernels.targets import TARGETS, host_target

__all__ = ["launch", "launch_alone", "panel_rows", "workers"]


class _State:
    """What a fork has to reset."""

    def __init__(self, pool_is_lost: bool = False):
        self.lock = threading.Lock()
        self.pool_started = False
        self.pool_is_lost = pool_is_lost


_state = _State()


def _after_fork() -> None:
    global _state
    _state = _State(pool_is_lost=_state.pool_started or _state.pool_is_lost)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def workers() -> int:
    """Return how many threads the next kernel runs on."""
    return 1 if _state.pool_is_lost else numba.get_num_threads()


def panel_rows() -> int:
    """Return how many keys a panel holds on this processor."""
    return TARGETS[_host()].rows


def launch(build: Callable, *arguments) -> None:
    """Compile what `build` builds, once per process, and run it.

    Parameters
    ----------
    build : callable
        ``build(decorate, target, stamp)`` returns a compiled function.
    arguments
        What the compiled function is called with.
    """
    with _state.lock:
        parallel = not _state.pool_is_lost
        compiled = _compiled(build, _host(), parallel)
        _state.pool_started = parallel
        compiled(*arguments)


def launch_alone(build: Callable, *arguments) -> None:
    """Compile and run a kernel of one core; any number of threads may do so."""
    _compiled(build, _host(), False)(*arguments)


@functools.cache
def _host() -> int:
    return host_target()


@functools.cache
def _compiled(build: Callable, target: int, parallel: bool) -> Callable:
    return build(parallel_kernel if parallel else kernel, target, source_stamp())
