"""Check what is claimed about lanes, stripes and the pool (chapter 7)."""

import numpy as np

from flashlib.attention import flash_attention
from flashlib.backends import available_backends
from flashlib.experiments.races import N_HEADS, find_races, right_output, run_heads
from flashlib.ledger.rows import Finding
from flashlib.output import AttentionOutput
from flashlib.testing import error_report, make_qkv

N_JOBS, TOKENS = 16, 70


def _same_bits(one: AttentionOutput, other: AttentionOutput) -> bool:
    return all(map(np.array_equal, one, other))


def _both(names: tuple[str, ...], *call: np.ndarray, **options: object) -> list:
    return [flash_attention(*call, **options, causal=True, backend=n) for n in names]


def two_loops_replaced() -> Finding:
    """Ask both kernels for sums that cannot round, and for sums that do."""
    names = ("scalar", "simd")
    if not set(names) <= set(available_backends()):
        return Finding("not testable here", "0 of 2 compiled kernels can run here")
    rng = np.random.default_rng(7)
    q, k, v = rng.integers(-2, 3, (3, TOKENS, 2, 32)).astype(np.float32)
    exact = _same_bits(*_both(names, q, k, np.sign(np.abs(v)), scale=0.25))
    call = make_qkv(TOKENS, head_dim=32)
    plain, lanes = _both(names, *call)
    report = error_report(lanes, *call, causal=True)
    changed = float(np.mean(plain.out != lanes.out))
    return Finding(
        "reproduced" if exact and changed and report.ok else "contradicted",
        f"where no sum can round, {TOKENS} causal rows of the loop with four sums "
        f"{'equal' if exact else 'differ from'} those of the plain loop to the bit, so "
        f"the walk is the same; elsewhere {changed:.0%} of the outputs change, within "
        f"{report.out / report.allowed:.0%} of what the rule allows",
    )


def stripes_are_disjoint() -> Finding:
    """Watch what four heads read and write, and run them in two orders."""
    stripe = [(2 * head, 2 * head + 2) for head in range(N_HEADS)]
    out, logs = run_heads(stripe.__getitem__, range(N_HEADS))
    back, _ = run_heads(stripe.__getitem__, reversed(range(N_HEADS)))
    races = find_races([logs[head] for head in range(N_HEADS)])
    written = sum(len(writes) for _, writes in logs.values())
    columns = [range(128 * head, 128 * head + 128) for head in range(N_JOBS)]
    wide = len(set().union(*columns)) == 128 * N_JOBS
    right = all(np.array_equal(x, right_output()) for x in (out, back))
    return Finding(
        "reproduced" if right and wide and not races else "contradicted",
        f"four heads under watch write {written} numbers of {out.size} and have "
        f"{len(races)} races, in either order; 16 stripes of 128 columns share none "
        f"of their {128 * N_JOBS} columns",
    )


def heads_as_jobs() -> Finding:
    """Run heads one by one on one core, and all at once on the pool."""
    if not {"simd", "pool"} <= set(available_backends()):
        return Finding("not testable here", "0 of 2 compiled kernels can run here")
    q, k, v = make_qkv(TOKENS, n_heads=N_JOBS, n_kv_heads=8, head_dim=32)
    serial, pooled = _both(("simd", "pool"), q, k, v)
    out = np.empty_like(serial.out)
    for head in reversed(range(N_JOBS)):
        kv = [x[:, [head // 2]] for x in (k, v)]
        (one,) = _both(("simd",), q[:, [head]], *kv)
        out[:, head] = one.out[:, 0]
    alone, together = np.array_equal(out, serial.out), _same_bits(serial, pooled)
    return Finding(
        "reproduced" if alone and together else "contradicted",
        f"{N_JOBS} heads asked for one by one, last first, "
        f"{'are' if alone else 'are not'} the bits of one call on one core, and the "
        f"pool {'gives' if together else 'does not give'} these bits too",
    )
