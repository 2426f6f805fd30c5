"""Check what is claimed about the running state and its rounding (chapter 4)."""

from collections.abc import Iterator

import numpy as np

from flashlib.ledger.rows import Finding
from flashlib.online_softmax import OnlineSoftmax, Step, walk
from flashlib.reference import materialized_attention
from flashlib.row import SCORES, VALUES

TOKENS, WIDTH, HEATS = 255, 64, (1.0, 12.0, 144.0)


def _rows(count: int = 60) -> Iterator[tuple[np.ndarray, list[Step]]]:
    """Yield rows of float32 scores up to about 150, and their walks."""
    rng = np.random.default_rng(4)
    for _ in range(count):
        scores = rng.normal(0, 40, int(rng.integers(1, 300))).astype(np.float32)
        values = rng.uniform(-1, 1, (len(scores), 4)).astype(np.float32)
        yield scores, list(walk(scores, values, int(rng.integers(1, 65))))


def two_plain_sums() -> Finding:
    """Sum numerator and denominator in pieces, all against one fixed number."""
    p = np.exp(SCORES - 5.0)
    pieces = [(p[a:b] @ VALUES[a:b], p[a:b].sum()) for a, b in ((4, 6), (0, 3), (3, 4))]
    numerator = sum(top for top, _ in pieces)
    out = numerator / sum(bottom for _, bottom in pieces)
    q, k = np.ones((1, 1, 1)), SCORES[:, None, None]
    want = materialized_attention(q, k, VALUES[:, None], scale=1.0).out[0, 0]
    off = float(np.abs(out - want).max())
    return Finding.of(
        off < 1e-14,
        f"three pieces of the row, summed out of order, give {out.round(4).tolist()}, "
        f"off by {off:.0e} from attention over the whole row",
    )


def three_quantities() -> Finding:
    """Compare every state on the way with its definition over the keys read."""
    worst, states = 0.0, 0
    for scores, steps in _rows():
        for done in steps:
            seen = scores[: done.stop].astype(np.float64)
            l = np.exp(seen - seen.max()).sum()
            same_max = done.after.m == seen.max()
            worst = max(worst, abs(done.after.l - l) / l if same_max else np.inf)
            states += 1
    return Finding.of(
        worst < 1e-5,
        f"{states} states on the way through 60 random rows hold the max of the keys "
        f"read, and their sum to {worst:.0e}",
    )


def rescale_only_on_a_rise() -> Finding:
    """Look at the factor of every tile that does not raise the max."""
    kept, raised = [], 0
    for _, steps in _rows():
        for done in steps[1:]:
            if done.m_tile > done.before.m:
                raised += 1
            else:
                kept.append(float(done.corr))
    exact = bool(kept) and set(kept) == {1.0}
    return Finding.of(
        exact,
        f"of {len(kept) + raised} tiles after the first, {raised} raise the max; for "
        f"the other {len(kept)} the factor is {min(kept):g} to {max(kept):g}",
    )


def factors_at_most_one() -> Finding:
    """Collect every factor and every term, and test the identity itself."""
    corr, p, least_l = 0.0, 0.0, np.inf
    for _, steps in _rows():
        for done in steps:
            corr, p = max(corr, float(done.corr)), max(p, float(done.p.max()))
            least_l = min(least_l, float(done.after.l))
    s, m_old, m_new = SCORES[:4], 3.0, 5.0
    identity = np.exp(s - m_new) - np.exp(s - m_old) * np.exp(m_old - m_new)
    holds = corr <= 1 and p <= 1 and least_l >= 1 and np.abs(identity).max() < 1e-15
    return Finding.of(
        holds,
        f"over 60 random rows with scores beyond 100 the largest factor is {corr:g}, "
        f"the largest term {p:g} and the smallest denominator {least_l:g}: no "
        "exponential overflows (row D7 lists what else can)",
    )


def same_terms_same_ratio() -> Finding:
    """Walk the same float64 scores in tiles of every size and compare weights."""
    rng = np.random.default_rng(5)
    scores = rng.normal(0, 3, 64)
    p = np.exp(scores - scores.max())
    # With unit vectors as values, a / l is the row of weights itself.
    off = max(
        np.abs(list(walk(scores, np.eye(64), tile))[-1].after.out - p / p.sum()).max()
        for tile in range(1, 65)
    )
    return Finding.of(
        off < 1e-15,
        f"in float64 the weights of 64 keys, walked in tiles of 1 to 64, differ from "
        f"softmax by at most {off:.0e}",
    )


def _errors(heat: float) -> tuple[float, float]:
    """Return the float32 errors of the walk and of the materialized form."""
    rng = np.random.default_rng(6)
    q, k, v = rng.uniform(-1, 1, (3, TOKENS, 1, WIDTH))
    q, k, v = (np.float32(x) for x in (q * np.sqrt(heat), k * np.sqrt(heat), v))
    exact = materialized_attention(q, k, v, dtype=np.float64).out
    plain = materialized_attention(q, k, v).out
    state = OnlineSoftmax.identity(WIDTH, np.float32, (TOKENS,))
    s = q[:, 0] @ k[:, 0].T * np.float32(1 / np.sqrt(WIDTH))
    for a in range(0, TOKENS, 64):
        state = state.update(s[:, a : a + 64], v[a : a + 64, 0])
    walked = np.abs(state.out - exact[:, 0]).max()
    return float(walked), float(np.abs(plain - exact).max())


def rounding_follows_the_scores() -> Finding:
    """Grow the scores and measure both forms against float64."""
    errors = [_errors(heat) for heat in HEATS]
    walked = [a for a, _ in errors]
    worst = max(a / b for a, b in errors)
    grows = walked[-1] > 20 * walked[0]
    return Finding.of(
        not (grows or worst > 2.5),
        f"with scores 1, 12 and 144 times as large the float32 error is "
        f"{', '.join(f'{a:.1e}' for a in walked)}, at most {worst:.2f} times that of "
        "the materialized form: only rounding, but it grows with the scores",
    )
