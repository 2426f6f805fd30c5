"""Check what is claimed about the tiled loop and where its data live (chapter 5)."""

import tracemalloc

import numpy as np

from flashlib.attention import flash_attention
from flashlib.layout import merge_heads, split_heads
from flashlib.ledger.rows import Finding
from flashlib.measure.host import caches
from flashlib.online_softmax import walk
from flashlib.reference import materialized_attention
from flashlib.row import KEYS, QUERY, SCORES, VALUES
from flashlib.testing import assert_accurate, make_qkv
from flashlib.traffic import flash_state_bytes

TILE, HEAD_DIM, HEADS, KV_HEADS = 64, 128, 16, 8
SMALL_L1 = 16 * 1024  # where the system does not tell
# Dao et al. 2022, section 2.1, for an A100: TB/s of HBM (two models) and of SRAM.
HBM_TB_S, SRAM_TB_S = (1.5, 2.0), 19.0


def at_most_one_tile() -> Finding:
    """Walk rows of several lengths; count scores per step and bytes at the peak."""
    rng, most, held = np.random.default_rng(0), {}, {}
    for n in (64, 511, 4096):
        scores, values = rng.normal(size=n), rng.normal(size=(n, 8))
        tracemalloc.start()
        most[n] = max(len(done.p) for done in walk(scores, values, TILE))
        held[n] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    holds = set(most.values()) == {TILE} and held[4096] < scores.nbytes / 2
    return Finding.of(
        holds,
        f"walks over 64, 511 and 4,096 keys have at most {max(most.values())} scores "
        f"at a time; the longest holds {held[4096]:,} B at its peak, and the scores "
        f"of its row alone would take {scores.nbytes:,} B",
    )


def state_fits_the_first_cache() -> Finding:
    """Compare the state of one worker with the first data cache of this machine."""
    state = sum(flash_state_bytes(TILE, HEAD_DIM))
    matrix = 4 * 511**2
    told = [c.n_bytes for c in caches() if c.level == 1]
    first = min(told, default=SMALL_L1)
    return Finding.of(
        state < first < matrix,
        f"the state takes {state} B of a level 1 cache of {first:,} B"
        f"{'' if told else ' (assumed)'}, and the score matrix of 511 tokens takes "
        f"{matrix:,} B; row D25 is about the speed of SRAM",
    )


def two_buffers() -> Finding:
    """Measure both buffers, the group and the scale of the published geometry."""
    scores, acc = np.empty(TILE, np.float32), np.empty(HEAD_DIM, np.float32)
    q, k, v = make_qkv(3, n_heads=HEADS, n_kv_heads=KV_HEADS, head_dim=HEAD_DIM)
    given = flash_attention(q, k, v, scale=1 / np.sqrt(HEAD_DIM), backend="numpy")
    usual = flash_attention(q, k, v, backend="numpy")
    same = np.array_equal(given.out, usual.out)
    sizes = (scores.nbytes, acc.nbytes) == tuple(flash_state_bytes(TILE, HEAD_DIM))
    return Finding.of(
        same and sizes and (scores.nbytes, acc.nbytes) == (256, 512),
        f"64 float32 scores take {scores.nbytes} B and 128 sums {acc.nbytes} B; with "
        f"{HEADS} heads on {KV_HEADS}, {HEADS // KV_HEADS} queries share a KV head, "
        f"and the default scale gives the bits of 1/sqrt({HEAD_DIM})",
    )


def strides_and_offsets() -> Finding:
    """Look every element up by its flat address."""
    rng, bad, seen = np.random.default_rng(1), 0, 0
    group, width, kv_width = HEADS // KV_HEADS, HEADS * 8, KV_HEADS * 8
    q_flat, k_flat = rng.normal(size=(5, width)), rng.normal(size=(6, kv_width))
    q, k = split_heads(q_flat, HEADS), split_heads(k_flat, KV_HEADS)
    q_run, k_run, columns = q_flat.ravel(), k_flat.ravel(), np.arange(8)
    for h in range(HEADS):
        kv_offset = (h // group) * 8
        for i in range(5):
            bad += not np.array_equal(q_run[i * width + h * 8 + columns], q[i, h])
        for j in range(6):
            at = j * kv_width + kv_offset + columns
            bad += not np.array_equal(k_run[at], k[j, h // group])
        seen += 11
    return Finding.of(
        bad == 0,
        f"{seen} head rows of q and k looked up by row * width + head * head_dim and "
        f"by row * kv_width + (head // {group}) * head_dim: {bad} differ",
    )


def first_pass() -> Finding:
    """Recompute scores and tile maxima of the row with plain loops."""
    maxima = []
    for start in range(0, 6, 2):
        m_tile = -np.inf
        for key in KEYS[start : start + 2]:
            dot = sum(a * b for a, b in zip(QUERY, key, strict=True))
            m_tile = max(m_tile, dot)
        maxima.append(float(m_tile))
    walked = [float(done.m_tile) for done in walk(SCORES, VALUES, 2)]
    return Finding.of(
        maxima == walked,
        f"dot, scale and compare give the tile maxima {maxima}; the walk has {walked}",
    )


def five_lines() -> Finding:
    """Look at the factor of each tile of the row, the first one above all."""
    steps = list(walk(SCORES, VALUES, 2))
    factors = [float(done.corr) for done in steps]
    repaired = steps[1].before.l * np.exp(3.0 - 5.0)
    added = steps[1].after.l - steps[1].p.sum()
    holds = factors[0] == 0 and abs(repaired - added) < 1e-15 and factors[2] == 1
    return Finding.of(
        holds,
        f"the factors of the three tiles are {factors[0]:g}, {factors[1]:.4f} and "
        f"{factors[2]:g}: minus infinity makes the first one 0 without a special case",
    )


def second_pass() -> Finding:
    """Add terms key by key, as the loop does, and compare with the walk."""
    l, acc = 0.0, np.zeros(2)
    for done in walk(SCORES, VALUES, 2):
        l, acc = l * done.corr, acc * done.corr
        for j in range(done.start, done.stop):
            p = np.exp(SCORES[j] - done.after.m)
            l, acc = l + p, acc + p * VALUES[j]
        off = max(abs(l - done.after.l), np.abs(acc - done.after.acc).max())
    return Finding.of(
        off < 1e-14,
        f"terms added one by one give l = {l:.6f} and acc = {acc.round(4).tolist()}, "
        f"off by {off:.0e} from the tile sums",
    )


def one_divide() -> Finding:
    """Divide once at the end, and view the heads as one concatenated row."""
    q, k, v = make_qkv(9, n_heads=4, n_kv_heads=2, head_dim=16)
    result = flash_attention(q, k, v, causal=True, backend="scalar")
    report = assert_accurate(result, q, k, v, causal=True)
    rows = merge_heads(result.out)
    heads = [(q[:, [h]], k[:, [h // 2]], v[:, [h // 2]]) for h in range(4)]
    alone = [materialized_attention(*head, causal=True).out[:, 0] for head in heads]
    off = float(np.abs(rows - np.concatenate(alone, axis=1)).max())
    return Finding.of(
        rows.shape == (9, 64) and off < 1e-6 and report.ok,
        f"the reference loop returns rows of {rows.shape[1]} floats, 4 heads of 16 "
        f"side by side, which differ from heads computed one by one by {off:.0e}",
    )


def sram_against_hbm() -> Finding:
    """Divide the paper's own bandwidths."""
    low, high = SRAM_TB_S / max(HBM_TB_S), SRAM_TB_S / min(HBM_TB_S)
    return Finding.of(
        low >= 100,
        f"the paper gives {min(HBM_TB_S)} to {max(HBM_TB_S)} TB/s for the HBM of an "
        f"A100 and about {SRAM_TB_S:g} TB/s for its SRAM (quoted): {low:.1f} to "
        f"{high:.1f} times as fast",
    )
