"""Check what a histogram of call sites can tell (chapter 23)."""

from __future__ import annotations

import importlib
import pkgutil
from collections import Counter
from functools import cache
from types import MappingProxyType

from flashlib.ledger.rows import Finding
from flashlib.machine import static_histogram, timeline
from flashlib.measure.two_kernels import decode_trace
from flashlib.programs import blocks, masks, slot_layout, tkg

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


def pinned_version() -> Finding:
    """Say why a line number cannot be looked up here."""
    return Finding(
        "not testable here",
        "the page names version 2.24.5133 and the first 8 of 64 digits of a checksum; "
        "no file of the kernel is part of this book, so 0 line numbers were looked up "
        "by this check",
    )


def call_sites_tell_the_story() -> Finding:
    """Compare the order of the call sites with the order of what is executed."""
    executed = Counter(decode_trace(2048).histogram())
    largest = {
        "published call sites": max(PUBLISHED, key=PUBLISHED.get),
        "call sites here": call_sites().most_common(1)[0][0],
        "executed": executed.most_common(1)[0][0],
    }
    never = sorted(op for op in call_sites() if op not in executed)
    listed = ", ".join(f"{name}: {op}" for name, op in largest.items())
    return Finding.of(
        largest["executed"] == largest["published call sites"],
        f"the 15 rows add up to {sum(PUBLISHED.values())} places in a source; the "
        f"most frequent is, {listed} ({executed.total()} instructions over 2,048 keys, "
        f"{executed['nc_matmul']} of them nc_matmul and {executed['dma_copy']} "
        f"dma_copy); {len(never)} kinds that stand in our source did not run",
    )


def histogram_shows_memory_bound() -> Finding:
    """Run one source with few and with many columns; see what each is bound by."""
    bound, shares = {}, {}
    for heads in (8, 128):
        line = timeline(decode_trace(2048, heads))
        work = line.busy()
        work["dma"] = line.busy("k_load", "v_load")["dma"]
        bound[heads] = max(work, key=work.get)
        shares[heads] = work["dma"] / max(work.values())
    listed = ", ".join(f"{h} heads: {b}" for h, b in bound.items())
    return Finding.of(
        len(set(bound.values())) == 1,
        f"the same {call_sites().total()} call sites over 2,048 keys are bound by, "
        f"{listed}, with loads at {shares[8]:.0%} and {shares[128]:.0%} of the longest "
        "work; a count of call sites cannot tell the two apart",
    )
