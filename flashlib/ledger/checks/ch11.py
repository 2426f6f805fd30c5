"""Check what is claimed about the gain, its cause and its growth (chapter 11).

Times of the source are quoted; times of the four paths are those that
``python -m flashlib.measure.attribution`` wrote down, with the machine.
"""

from flashlib.experiments.published import (
    GPU,
    LONG,
    RUNS,
    SHORT,
    decode_changes,
    fits,
    ratio_range,
    saving,
)
from flashlib.ledger.rows import Finding
from flashlib.measure.attribution import shares
from flashlib.measure.record import read

CLAIMED = {"simd": {SHORT: 13, LONG: 26}, "pool": {SHORT: 25, LONG: 36}}


def shortened_prefill() -> Finding:
    """Divide the quoted times."""
    found = {
        (backend, n): 100 * saving(run)
        for backend, runs in RUNS.items()
        for n, run in runs.items()
    }
    right = all(
        round(percent) == CLAIMED[backend][n] for (backend, n), percent in found.items()
    )
    listed = ", ".join(
        f"{backend} at {n:,} {percent:.1f}%" for (backend, n), percent in found.items()
    )
    return Finding.of(right, f"the quoted times give: {listed}")


def published_times() -> Finding:
    """Look whether the quoted runs agree with each other; they cannot be run here."""
    largest = max(map(abs, decode_changes()))
    near = abs(GPU.refusing / GPU.before - 1)
    evidence = (
        f"quoted and not measured: this engine and its processor are not here; within "
        f"the quoted runs decode moved by {largest:.2%} at most and the GPU prefill by "
        f"{near:.2%}"
    )
    agrees = max(largest, near) < 0.02
    return Finding("not testable here" if agrees else "contradicted", evidence)


def keeps_climbing() -> Finding:
    """Follow the fits to longer prompts."""
    lengths = [SHORT * 2**i for i in range(8)]
    told, climbs = [], True
    for backend in RUNS:
        before, after = fits(backend)
        saved = [1 - after.at(n) / before.at(n) for n in lengths]
        climbs &= saved == sorted(saved)
        told.append(
            f"{backend} {saved[0]:.1%}, {saved[2]:.1%}, {saved[3]:.1%}, {saved[6]:.1%}"
        )
    at = ", ".join(f"{lengths[i]:,}" for i in (0, 2, 3, 6))
    return Finding.of(
        climbs,
        f"by the fit through the quoted times the part saved at {at} tokens is: "
        f"{'; '.join(told)}; it rises at every doubling, and less at each later one "
        f"(row D2)",
    )


def traffic_is_the_cause() -> Finding:
    """Share out the gain of the four measured paths."""
    content = read("attribution")
    found = {
        (cores, n): shares({name: by[n] for name, by in paths.items()})
        for cores, paths in content["times"].items()
        for n in next(iter(paths.values()))
    }
    most = max(found, key=lambda key: found[key].matrix)
    least = min(found, key=lambda key: found[key].matrix)
    return Finding.of(
        found[least].matrix > 0.5,
        f"measured with the same inner loops, dropping the matrix takes "
        f"{found[least].matrix:.0%} to {found[most].matrix:.0%} of the gain and the "
        f"loop bound the rest, over {len(found)} pairs of length and number of cores; "
        f"the quoted times give square terms in the ratio "
        f"{' and '.join(f'{_ratio(b):.3f}' for b in RUNS)}, and half the pairs is 0.5",
    )


def _ratio(backend: str) -> float:
    before, after = fits(backend)
    return after.b / before.b


def grows_without_bound() -> Finding:
    """Take the limit of the part saved."""
    limits = {backend: 1 - _ratio(backend) for backend in RUNS}
    told = " and ".join(f"{x:.0%} ({backend})" for backend, x in limits.items())
    return Finding.of(
        max(limits.values()) >= 1,
        f"the part saved tends to 1 minus the ratio of the square terms, which is "
        f"{told} for the quoted times",
    )


def seven_digits() -> Finding:
    """Compare seven digits with what moved although nothing had changed."""
    largest = max(map(abs, decode_changes()))
    spreads = [
        (row.high - row.low) / row.milliseconds for row in read("attribution")["rows"]
    ]
    median = sorted(spreads)[len(spreads) // 2]
    low, high = ratio_range("pool", largest)
    return Finding.of(
        largest < 1e-6,
        f"decode, whose code was the same, moved by up to {largest:.2%} between the "
        f"quoted runs, and rounds of one kernel here by {median:.0%} (median of "
        f"{len(spreads)}): two digits hold; times off by as much as decode put the "
        f"ratio of the square terms of the pool between {low:.2f} and {high:.2f}",
    )
