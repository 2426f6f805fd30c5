"""Check what is claimed about sharing one key and value head (chapter 20)."""

import numpy as np

from flashlib.ledger.rows import Finding
from flashlib.machine.trace import Trace
from flashlib.programs import TkgConfig, attention_tkg
from flashlib.programs.cache_call import decode_slots

SLOTS, WIDTH, SEQ = 256, 64, 2


def _trace(n_heads: int) -> Trace:
    rng = np.random.default_rng(20)
    shapes = (SEQ, n_heads, WIDTH), (SLOTS, 1, WIDTH), (SLOTS, 1, WIDTH)
    qkv = (rng.standard_normal(shape).astype(np.float32) for shape in shapes)
    return decode_slots(*qkv, strided=False).traces[0]


def _rotated(n_heads: int) -> list[int]:
    """Return the columns of every sine that a fused rotation looks up."""
    config = TkgConfig(
        curr_sprior=SLOTS,
        full_sprior=SLOTS,
        tp_k_prior=True,
        use_pos_id=True,
        fuse_rope=True,
    )
    rng = np.random.default_rng(21)
    shapes = (n_heads, SEQ), (1, SEQ), (1, SEQ), (1, SLOTS), (1, SLOTS)
    args = [rng.standard_normal((1, *s, WIDTH)).astype(np.float32) for s in shapes]
    freqs = np.ones((WIDTH // 2, 1), np.float32)
    pos = 9 + np.arange(SEQ)[None]
    call = {"config": config, "pos_ids": pos, "inv_freqs": freqs}
    result = attention_tkg(*args, **call)
    assert result.k_out.shape == (1, 1, WIDTH, SEQ)
    widths = [
        int(np.prod(r.writes[0].shape[1:]))
        for r in result.traces[0]
        if r.step == "rope" and r.op == "tensor_tensor"
    ]
    return widths


def heads_as_columns() -> Finding:
    """Count products and their width for 1 and 8 heads, and look at the rotation."""
    widths, products = {}, {}
    for n_heads in (1, 8):
        found = [r for r in _trace(n_heads) if r.step == "mm1" and r.op == "nc_matmul"]
        widths[n_heads] = {r.read("moving").n for r in found}
        products[n_heads] = len(found)
    narrow = {n: _rotated(n).count(SEQ) for n in (2, 8)}
    holds = products[1] == products[8] and widths == {1: {SEQ}, 8: {8 * SEQ}}
    return Finding.of(
        holds and narrow[2] == narrow[8] > 0,
        f"{products[1]} products for 1 head and {products[8]} for 8, with {SEQ} and "
        f"{8 * SEQ} columns moving; {narrow[2]} steps of the rotation work on the "
        f"{SEQ} columns of the shared key with 2 heads, {narrow[8]} with 8",
    )


def memory_of_sharing() -> Finding:
    """Compare bytes loaded and bytes held for 1 and 8 heads."""
    loaded, held = {}, {}
    for n_heads in (1, 8):
        trace = _trace(n_heads)
        loaded[n_heads] = trace.bytes(step="k_load") + trace.bytes(step="v_load")
        (fill,) = [r for r in trace if r.step == "mm1" and r.op == "memset"]
        flags = [r for r in trace if r.op == "tensor_copy_predicated"]
        mask = sum(int(np.prod(r.read("predicate").shape)) for r in flags)
        held[n_heads] = 4 * int(np.prod(fill.writes[0].shape)) + mask
    return Finding.of(
        loaded[1] == loaded[8] and held[1] == held[8],
        f"keys and values are {loaded[1]:,} bytes with 1 head and {loaded[8]:,} with "
        f"8, so they cost nothing; scores and mask take {held[1]:,} and {held[8]:,}",
    )
