"""Attention of other libraries, where they are installed, to compare with (book)."""

import contextlib
from collections.abc import Callable, Iterator

import numpy as np

from flashlib.measure.torch_process import TorchProcess, installed

__all__ = ["add_torch"]


@contextlib.contextmanager
def add_torch(
    functions: dict[str, Callable[[], np.ndarray]],
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    *,
    causal: bool,
    cores: int,
) -> Iterator[bool]:
    """Add PyTorch's attention to `functions` under ``"torch"``, if there is one.

    Parameters
    ----------
    functions : dict
        What is compared, by name.
    q, k, v : numpy.ndarray
        ``[batch, seq, heads, width]``.
    causal : bool
        Top-left aligned, as PyTorch has it.
    cores : int

    Yields
    ------
    bool
        Whether it was added; its process ends with the context.
    """
    if not installed():
        yield False
        return
    functions["torch"] = peer = TorchProcess(q, k, v, causal=causal, cores=cores)
    try:
        yield True
    finally:
        peer.close()
