"""Check what a histogram of call sites can tell (chapter 23)."""

from collections import Counter

from flashlib.experiments.call_sites import PUBLISHED, call_sites
from flashlib.experiments.two_kernels import decode_trace
from flashlib.ledger.rows import Finding
from flashlib.machine import timeline


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
        f"what bounds the same {call_sites().total()} call sites over 2,048 keys: "
        f"{listed}, with loads at {shares[8]:.0%} and {shares[128]:.0%} of the longest "
        "work; a count of call sites cannot tell the two apart",
    )
