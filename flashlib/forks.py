"""Remember whether a fork has cost this process the threads of Numba (chapter 7).

A pool of threads does not survive a fork: the child remembers it and has none of its
threads. Only who watches from the start can tell, so the package imports this first;
Numba may be imported, and may start its threads, at any time after that.
"""

import os
import sys

__all__ = ["pool_is_lost"]

_lost = False


def pool_is_lost() -> bool:
    """Return True in a child whose parent had the threads of Numba already."""
    return _lost


def _after_fork() -> None:
    global _lost
    numba = sys.modules.get("numba")
    try:
        # Any question about its threads has started them, not only a kernel.
        _lost = numba is not None and bool(numba.threading_layer())
    except ValueError:  # they have not been started
        _lost = False


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
