"""Count the call sites of our decode kernel, beside those of the page (chapter 23)."""

import importlib
import pkgutil
from collections import Counter
from functools import cache
from types import MappingProxyType

from flashlib.machine import static_histogram
from flashlib.programs import blocks, masks, slot_layout, tkg

__all__ = ["PUBLISHED", "call_sites"]

#: The histogram of the page, quoted.
PUBLISHED = MappingProxyType(
    {
        "dma_copy": 32,
        "tensor_copy": 24,
        "tensor_tensor": 18,
        "tensor_scalar": 12,
        "nc_transpose": 9,
        "memset": 9,
        "activation": 8,
        "sendrecv": 6,
        "tensor_reduce": 5,
        "nc_matmul": 3,
        "reciprocal": 2,
        "dma_transpose": 2,
        "tensor_copy_predicated": 1,
        "scalar_tensor_tensor": 1,
        "iota": 1,
    }
)


@cache
def call_sites() -> Counter[str]:
    """Count the call sites of our decode kernel and of what it calls."""
    modules = [blocks, slot_layout]
    for package in (tkg, masks):
        names = (m.name for m in pkgutil.iter_modules(package.__path__))
        modules += [importlib.import_module(f"{package.__name__}.{n}") for n in names]
    total: Counter[str] = Counter()
    for module in modules:
        total.update(static_histogram(module))
    return total
