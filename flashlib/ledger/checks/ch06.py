"""Check what is claimed about masks as loop bounds (chapter 6)."""

import numpy as np

from flashlib.attention import flash_attention
from flashlib.ledger.rows import Finding
from flashlib.masks import causal_mask
from flashlib.online_softmax import walk
from flashlib.reference import materialized_attention
from flashlib.testing import make_qkv

TOKENS = 127


def mask_is_a_bound() -> Finding:
    """Write minus infinity into the triangle, or stop; compare results and work."""
    q, k, v = make_qkv(TOKENS, n_heads=1, n_kv_heads=1, dtype=np.float64)
    triangle = np.where(causal_mask(TOKENS, TOKENS), 0.0, -np.inf)
    as_data = materialized_attention(q, k, v, bias=triangle)
    s = q[:, 0] @ k[:, 0].T / np.sqrt(q.shape[2])
    off, terms = 0.0, 0
    for i in range(TOKENS):
        steps = list(walk(s[i, : i + 1], v[: i + 1, 0], 64))
        terms += sum(len(done.p) for done in steps)
        off = max(off, np.abs(steps[-1].after.out - as_data.out[i, 0]).max())
    half = terms == TOKENS * (TOKENS + 1) // 2
    return Finding.of(
        half and off < 1e-13,
        f"over {TOKENS} tokens a loop that stops at its own key gives the masked "
        f"result to {off:.0e} with {terms:,} exponentials for {TOKENS**2:,}",
    )


def causal_needs_no_square() -> Finding:
    """Ask for the last rows alone, over all keys, and compare with the whole."""
    q, k, v = make_qkv(40, n_heads=4, n_kv_heads=2)
    whole = flash_attention(q, k, v, causal=True, backend="numpy").out
    off = {}
    for rows in (1, 3, 17):
        later = flash_attention(q[-rows:], k, v, causal=True, backend="numpy").out
        off[rows] = float(np.abs(later - whole[-rows:]).max())
    meaningful = max(off.values()) < 1e-6
    return Finding.of(
        not meaningful,
        f"the last 1, 3 and 17 of 40 causal rows, asked for alone over all 40 keys, "
        f"equal the rows of the square call to {max(off.values()):.0e}: with the last "
        "query on the last key a causal call needs no equal lengths",
    )
