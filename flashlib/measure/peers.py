"""Attention of other libraries, where they are installed, to compare with (book)."""

import importlib.util
from collections.abc import Callable

import numpy as np

from flashlib.kernels.peak import limit_workers

__all__ = ["limit_cores", "torch_decode", "torch_prefill"]


def limit_cores(n: int) -> None:
    """Let flashlib's kernels and PyTorch use `n` cores."""
    limit_workers(n)
    if _installed("torch"):
        import torch

        torch.set_num_threads(n)


def torch_prefill(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, *, causal: bool
) -> Callable[[], np.ndarray] | None:
    """Return PyTorch's attention on the same numbers, or None without PyTorch.

    The arrays are laid out as PyTorch likes them, ``[1, heads, seq, width]``,
    before the clock starts.
    """
    if not _installed("torch"):
        return None
    import torch

    tensors = [_heads_first(torch, x[None]) for x in (q, k, v)]

    def run():
        out = torch.nn.functional.scaled_dot_product_attention(
            *tensors, is_causal=causal, enable_gqa=True
        )
        return out[0].transpose(0, 1).numpy()

    return run


def torch_decode(
    q: np.ndarray, k_cache: np.ndarray, v_cache: np.ndarray
) -> Callable[[], np.ndarray] | None:
    """Return PyTorch's attention of one new token over whole caches, or None."""
    if not _installed("torch"):
        return None
    import torch

    tensors = [_heads_first(torch, x) for x in (q, k_cache, v_cache)]

    def run():
        out = torch.nn.functional.scaled_dot_product_attention(
            *tensors, enable_gqa=True
        )
        return out.transpose(1, 2).numpy()

    return run


def _heads_first(torch, x: np.ndarray):
    return torch.from_numpy(np.ascontiguousarray(x)).transpose(1, 2).contiguous()


def _installed(name: str) -> bool:
    return importlib.util.find_spec(name) is not None
