"""Compile every kernel with one set of settings (chapter 5).

Fast math is a list of permissions, given one by one. ``nnan`` and ``ninf`` are
left out for good: with them the compiler may assume that no NaN and no
infinity exists, and deletes the very guards that make masked rows right. So
``fastmath=True``, which contains both, must not appear anywhere.
"""

import zlib
from collections.abc import Callable
from pathlib import Path

import numba

from flashlib import chains

__all__ = ["SETTINGS", "exact", "inner", "kernel", "source_stamp"]

SETTINGS = {
    "nogil": True,
    "cache": True,
    # 1 / 0 is inf, as in NumPy, instead of an exception inside a loop.
    "error_model": "numpy",
    "fastmath": {"contract", "reassoc", "nsz", "arcp", "afn"},
}


def kernel(function: Callable, *, parallel: bool = False) -> Callable:
    """Compile `function` on its first call, and remember it on disk if possible.

    With `parallel` its ``prange`` is spread over the cores.

    subtle: Numba looks for a place to write when the decorator runs, and
    raises if there is none. A read-only install must still import, so such a
    kernel is compiled anew in every process instead.
    """
    try:
        return numba.njit(**SETTINGS, parallel=parallel)(function)
    except RuntimeError as error:
        if "no locator available" not in str(error):
            raise
        settings = {**SETTINGS, "cache": False}
        return numba.njit(**settings, parallel=parallel)(function)


def inner(function: Callable) -> Callable:
    """Compile what only kernels call; it is kept on disk as part of its callers.

    Without wrappers for callers in Python it compiles in four fifths of the time.
    """
    settings = {**SETTINGS, "cache": False}
    return numba.njit(**settings, no_cpython_wrapper=True, no_cfunc_wrapper=True)(
        function
    )


def exact(function: Callable) -> Callable:
    """Compile what only kernels call, to the letter: no permission is given."""
    settings = {**SETTINGS, "cache": False, "fastmath": False}
    return numba.njit(**settings)(function)


def source_stamp() -> int:
    """Return a number that changes with the source of any kernel.

    subtle: Numba's cache looks only at the file that defines a kernel, and
    would go on using old copies of what lives in other files. A kernel that
    is built around this number is looked up under it as well. The lengths of
    chains are compiled in, so their file counts.
    """
    # subtle: a package may come without sources that can be read, in an archive or
    # compiled to bytecode. Nobody edits its kernels there, so one number will do.
    try:
        files = [*sorted(Path(__file__).parent.glob("*.py")), Path(chains.__file__)]
        return zlib.crc32(b"".join(file.read_bytes() for file in files))
    except OSError:
        return 0
