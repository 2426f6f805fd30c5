"""Check what is claimed about the operations of a whole model (chapter 10)."""

import numpy as np

from flashlib.experiments.histogram import NAMES, narrow_model, traced
from flashlib.ledger.rows import Finding
from flashlib.model import Operations, TracingOperations

FILL, TRANSPOSE, SOFTMAX, MATMUL, FLASH, FUSED = NAMES
PROMPT = np.arange(17)


def all_in_prefill() -> Finding:
    """Watch the prompt and the decode steps separately."""
    model = narrow_model(28)
    first = TracingOperations(Operations("numpy", "materialized"))
    _, cache = model.prefill(PROMPT, first)
    later = TracingOperations(Operations("numpy", "materialized"))
    for token in range(2):
        model.decode(token, cache, later)
    there = [first.counts[name] for name in (FILL, TRANSPOSE)]
    after = [later.counts[name] for name in (FILL, TRANSPOSE)]
    return Finding.of(
        min(there) > 0 and max(after) == 0,
        f"the pass over the prompt fills {there[0]} masks and transposes {there[1]} "
        f"times; two decode passes after it, {after[0]} and {after[1]} times",
    )


def model_around_is_the_same() -> Finding:
    """Compare everything that is not prefill attention, and what is cached."""
    model = narrow_model(28)
    counts, caches = {}, {}
    for engine in ("materialized", "flash"):
        ops = TracingOperations(Operations("numpy", engine))
        _, caches[engine] = model.prefill(PROMPT, ops)
        model.decode(3, caches[engine], ops)
        counts[engine] = ops.counts
    names = ("head_norm", "rope", "rms_norm", "swiglu", "fused_attention")
    same = all(counts["flash"][x] == counts["materialized"][x] for x in names)
    pairs = list(zip(*(cache.layers for cache in caches.values()), strict=True))
    one, other = pairs[0]
    first = all(
        np.array_equal(getattr(one, x)[:, :18], getattr(other, x)[:, :18]) for x in "kv"
    )
    gap = max(float(np.abs(a.k[:, :18] - b.k[:, :18]).max()) for a, b in pairs)
    return Finding.of(
        same and first and gap < 1e-3,
        f"norms, rotations and {counts['flash'][FUSED]} decode calls are equally many; "
        f"the cached keys and values of the first layer are equal bit for bit, and "
        f"the keys of all {len(pairs)} layers to {gap:.1e}",
    )


def published_histogram() -> Finding:
    """Trace both engines at 28 layers of 16 heads."""
    want = {FILL: (448, 0), TRANSPOSE: (448, 0), SOFTMAX: (450, 2)}
    want |= {MATMUL: (1290, 394), FLASH: (0, 28)}
    runs = [
        traced(28, 16, 2, engine, len(PROMPT)) for engine in ("materialized", "flash")
    ]
    got = {name: tuple(run[name] for run in runs) for name in want}
    said = ", ".join(f"{name} {a:,} to {b:,}" for name, (a, b) in got.items())
    return Finding.of(got == want, f"traced here: {said}")
