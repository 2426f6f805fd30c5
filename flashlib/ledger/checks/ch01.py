"""Check the claim about the textbook path of attention (chapter 1)."""

import numpy as np

from flashlib.ledger.rows import Finding
from flashlib.reference import materialized_attention

HEADS, KV_HEADS, HEAD_DIM, LAYERS = 16, 8, 128, 28
TOKENS = 17


def textbook_path() -> Finding:
    """Write the four passes down, count them, and compare with the package."""
    rng = np.random.default_rng(2)
    q = rng.normal(size=(TOKENS, HEADS, HEAD_DIM))
    k, v = rng.normal(size=(2, TOKENS, KV_HEADS, HEAD_DIM))
    expected = materialized_attention(q, k, v, causal=True).out
    matrices, worst = 0, 0.0
    for h in range(HEADS):
        group_head = h // (HEADS // KV_HEADS)
        s = q[:, h] @ k[:, group_head].T / np.sqrt(HEAD_DIM)
        s[np.triu_indices(TOKENS, 1)] = -np.inf
        w = np.exp(s - s.max(axis=1, keepdims=True))
        w /= w.sum(axis=1, keepdims=True)
        out = w @ v[:, group_head]
        matrices += LAYERS
        worst = max(worst, float(np.abs(out - expected[:, h]).max()))
    agrees = worst < 1e-12 and matrices == 448
    return Finding.of(
        agrees,
        f"scores, mask, softmax and product with V, written as four passes, agree with "
        f"the package to {worst:.1e}; {HEADS} heads in {LAYERS} layers make {matrices} "
        f"score matrices in one prefill",
    )
