"""Attention of other libraries, where they are installed, to compare with (book)."""

import contextlib
import importlib.util
from collections.abc import Callable, Iterator

import numpy as np

from flashlib.measure.peer_libraries import LIBRARIES
from flashlib.measure.peer_process import PeerProcess

__all__ = ["add_peers", "installed_peers"]


def installed_peers() -> tuple[str, ...]:
    """Return the libraries that can be compared with here."""
    return tuple(name for name in LIBRARIES if importlib.util.find_spec(name))


@contextlib.contextmanager
def add_peers(
    functions: dict[str, Callable[[], np.ndarray]],
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    *,
    causal: bool,
    cores: int,
) -> Iterator[tuple[str, ...]]:
    """Add every other library's attention to `functions`, under its name.

    Parameters
    ----------
    functions : dict
        What is compared, by name.
    q, k, v : ndarray
        ``[batch, seq, heads, width]``.
    causal : bool
        Top-left aligned, as all of them have it.
    cores : int

    Yields
    ------
    tuple of str
        The names that were added; their processes end with the context.
    """
    names = installed_peers()
    with contextlib.ExitStack() as stack:
        for name in names:
            peer = PeerProcess(name, q, k, v, causal=causal, cores=cores)
            stack.callback(peer.close)
            functions[name] = peer
        yield names
