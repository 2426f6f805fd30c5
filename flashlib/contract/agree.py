"""Inputs small enough to read, and comparisons that show their values (book)."""

import numpy as np

from flashlib.contract.dense import dense

JUNK = (np.nan, np.inf, -np.inf, 1e30)


def col(*values: float) -> np.ndarray:
    """Return n tokens of one head of width 1: float32 ``[n, 1, 1]``."""
    return np.array(values, np.float32).reshape(-1, 1, 1)


def zeros(n: int) -> np.ndarray:
    """Return n tokens of zero; as queries they give every key the same score."""
    return np.zeros((n, 1, 1), np.float32)


def ones(n: int) -> np.ndarray:
    """Return n tokens of one."""
    return np.ones((n, 1, 1), np.float32)


def draw(seq_q, seq_k, n_heads=1, n_kv_heads=1, head_dim=2, seed=0, gain=1.0):
    """Draw q, k, v from the standard normal distribution; gain multiplies q."""
    random = np.random.default_rng(seed)
    shapes = (
        (seq_q, n_heads, head_dim),
        (seq_k, n_kv_heads, head_dim),
        (seq_k, n_kv_heads, head_dim),
    )
    q, k, v = (random.standard_normal(shape, np.float32) for shape in shapes)
    return q * np.float32(gain), k, v


def agree(got, out=None, lse=None, said: str = "") -> None:
    """Assert that out and lse are the wanted ones to float32 rounding.

    NaN equals NaN, infinities equal themselves; `out` and `lse` are compared flat.
    """
    for name, seen, want in (("out", got.out, out), ("lse", got.lse, lse)):
        if want is not None:
            _close(np.ravel(seen), np.ravel(want), name, said)


def _close(seen: np.ndarray, want: np.ndarray, name: str, said: str) -> None:
    seen, want = np.asarray(seen, np.float64), np.asarray(want, np.float64)
    where = f" {said}" if said else ""
    assert seen.shape == want.shape, (
        f"{name}{where} has {seen.size} values; expected {want.size}"
    )
    finite = np.abs(want[np.isfinite(want)])
    atol = 2e-6 * max(1.0, finite.max(initial=0.0))
    fine = np.isclose(seen, want, rtol=0, atol=atol, equal_nan=True)
    if not fine.all():
        at = int(np.argmin(fine))
        raise AssertionError(
            f"{name}{where} has {seen[at]:.7g} at flat index {at}; "
            f"expected {want[at]:.7g}; {np.sum(~fine)} of {fine.size} differ"
        )


def right(attention, q, k, v, said: str = "", **options) -> None:
    """Assert that one call gives what `dense` gives."""
    want = dense(q, k, v, **options)
    agree(attention(q, k, v, **options), want.out, want.lse, said)


def same_bits(one, other, said: str) -> None:
    """Assert that two results are equal bit for bit."""
    for name, a, b in zip(("out", "lse"), one, other, strict=True):
        differ = a.view(np.uint8).reshape(-1) != b.view(np.uint8).reshape(-1)
        if differ.any():
            at = int(np.argmax(differ)) // a.itemsize
            raise AssertionError(
                f"{name} {said} has {np.ravel(b)[at]:.9g} at flat index {at}; "
                f"expected the bits of {np.ravel(a)[at]:.9g}"
            )


def unread(attention, q, k, v, hidden, said: str, **options) -> None:
    """Assert that whatever the keys `hidden` hold, no bit of the result changes."""
    k, v = k.copy(), v.copy()
    k[hidden], v[hidden] = 0, 0
    clean = attention(q, k, v, **options)
    for junk in JUNK:
        k[hidden], v[hidden] = junk, junk
        same_bits(clean, attention(q, k, v, **options), f"with {junk} {said}")
