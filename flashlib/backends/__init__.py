"""Find a backend by its name, without importing what it does not need (book).

To add one, write its class and add a line to `_ENTRIES`; a backend that needs
a compiler names it there, and is simply not offered where it is absent.
"""

import importlib
import importlib.util
from typing import NamedTuple

from flashlib.backends.base import ALGORITHMS, Backend, Choice
from flashlib.errors import ArgumentError, shown

__all__ = ["ALGORITHMS", "Backend", "Choice", "available_backends", "get_backend"]


class _Entry(NamedTuple):
    module: str
    attribute: str
    needs: str | None


_ENTRIES = {
    "numpy": _Entry("flashlib.backends.base", "Backend", None),
    "scalar": _Entry("flashlib.backends.scalar", "ScalarBackend", "numba"),
    "simd": _Entry("flashlib.backends.simd", "SimdBackend", "numba"),
    "pool": _Entry("flashlib.backends.pool", "PoolBackend", "numba"),
    "blocked": _Entry("flashlib.backends.blocked", "BlockedBackend", "numba"),
    "blas": _Entry("flashlib.backends.blas", "BlasBackend", None),
}

# What "auto" picks: the first that is available.
_PREFERENCE = ("blocked", "scalar", "numpy")

_instances: dict[str, Backend] = {}


def available_backends() -> tuple[str, ...]:
    """Return the names of the backends that can run here.

    Examples
    --------
    >>> "numpy" in available_backends()
    True
    """
    return tuple(name for name, entry in _ENTRIES.items() if _present(entry.needs))


def get_backend(backend: str | Backend = "auto") -> Backend:
    """Return a backend by name; an instance comes back as it is.

    Raises
    ------
    ArgumentError
        If the name is not known, or needs a package that is not installed.
    """
    if isinstance(backend, Backend):
        return backend
    known_name = isinstance(backend, str) and backend in ("auto", *_ENTRIES)
    if known_name and backend == "auto":
        return _best()
    if not known_name:
        known = ", ".join(("auto", *_ENTRIES))
        raise ArgumentError(
            f"backend has {shown(backend)}; expected one of {known}; an instance of "
            "Backend will do as well"
        )
    try:
        return _load(backend)
    except ImportError:
        needs = _ENTRIES[backend].needs
        raise ArgumentError(
            f"backend has {shown(backend)}; expected one of "
            f"{', '.join(('auto', *available_backends()))}; this one needs {needs}; "
            f"install {needs}"
        ) from None


def _best() -> Backend:
    for name in _PREFERENCE[:-1]:
        if _present(_ENTRIES[name].needs):
            try:
                return _load(name)
            except ImportError:  # present, but broken: the next one will do
                continue
    return _load(_PREFERENCE[-1])


def _present(package: str | None) -> bool:
    try:
        return package is None or importlib.util.find_spec(package) is not None
    except (ImportError, ValueError):
        return False


def _load(name: str) -> Backend:
    if name not in _instances:
        entry = _ENTRIES[name]
        backend_class = getattr(importlib.import_module(entry.module), entry.attribute)
        _instances[name] = backend_class()
    return _instances[name]
