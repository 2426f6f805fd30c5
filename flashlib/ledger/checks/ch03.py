"""Check what is claimed about the value subtracted before exp (chapter 3)."""

import numpy as np

from flashlib.experiments.row_weights import shifted_softmax, weight_error
from flashlib.ledger.rows import Finding
from flashlib.row import SCORES

OFFSETS = range(111)


def needs_the_whole_row() -> Finding:
    """Change the last score of the row and see which outputs stay."""
    row = SCORES.copy()
    before = shifted_softmax(row, row.max())
    moved = []
    for last in (2.0, 5.0, 8.0):
        row[-1] = last
        moved.append(np.abs(shifted_softmax(row, row.max()) - before)[:-1].min())
    held = min(moved) > 0
    return Finding.of(
        held,
        f"raising only the last of six scores to 2, 5 or 8 moves each of the other "
        f"five weights, by at least {min(moved):.1e}: none of them is final before "
        f"the row ends",
    )


def exact_reference_cancels() -> Finding:
    """Subtract max + 0 ... max + 110 in float64, where nothing underflows."""
    weights = []
    for offset in OFFSETS:
        p = np.exp(SCORES - (SCORES.max() + offset))
        weights.append(p / p.sum())
    spread = float(np.abs(np.array(weights) - weights[0]).max())
    return Finding.of(
        spread < 1e-12,
        f"in float64 the weights of the row move by at most {spread:.1e} while the "
        f"subtracted value goes from the max to the max + {OFFSETS[-1]}; row D6 asks "
        f"the same of float32",
    )


def any_reference_above_max() -> Finding:
    """Sweep the anchor upwards in float32 until the weights are gone."""
    top = max(SCORES)
    errors = [weight_error(SCORES, top + offset) for offset in OFFSETS]
    alive = [np.count_nonzero(shifted_softmax(SCORES, top + o)) for o in OFFSETS]
    broken = np.isnan(errors)
    if not broken.any() and max(errors) < 1e-6:
        return Finding.of(True, f"worst error up to +110: {max(errors):.1e}")
    first = int(np.argmax(broken))
    return Finding.of(
        False,
        f"float32 weights of the row are off by {errors[100]:.1%} of the largest one "
        f"at max + 100, {alive[first - 1]} of 6 keys is left at max + {first - 1}, "
        f"and all weights are NaN from max + {first}",
    )


def exponents_at_most_zero_are_safe() -> Finding:
    """Try the ways in which a softmax at its max can still fail in float32."""
    big = np.float32(3e19)
    with np.errstate(over="ignore"):
        overflown = np.array([big * big, 0.0], dtype=np.float32)
    rows = {
        "a row of -inf": np.full(4, -np.inf, np.float32),
        "a score of +inf": np.array([np.inf, 0.0], np.float32),
        "a dot product of 3e19 with 3e19": overflown,
    }
    with np.errstate(invalid="ignore"):
        failed = [
            name
            for name, row in rows.items()
            if np.isnan(shifted_softmax(row, row.max())).any()
        ]
    finite = np.float32([-3e38, 0.0, 3e38])
    fine = np.isfinite(shifted_softmax(finite, finite.max())).all()
    return Finding.of(
        not failed,
        f"exp itself never overflows (finite scores up to 3e38 give finite weights: "
        f"{'yes' if fine else 'no'}), but {len(failed)} of {len(rows)} probes end in "
        f"NaN: {', '.join(failed)}",
    )
