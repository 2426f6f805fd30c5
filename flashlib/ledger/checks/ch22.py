"""Check what is claimed about tiles and two cores (chapter 22)."""

import numpy as np

from flashlib.ledger.rows import Finding
from flashlib.programs import TkgConfig, attention_cte
from flashlib.programs.cache_call import decode_cached
from flashlib.programs.tkg.sizes import shares, sizes_of
from flashlib.reference import materialized_attention


def _draw(slots: int, batch: int = 1, heads: int = 2, width: int = 16):
    rng = np.random.default_rng(22)
    q = rng.standard_normal((batch, heads, 1, width)).astype(np.float32)
    k, v = rng.standard_normal((2, batch, slots, width)).astype(np.float32)
    return q, k, v


def _oracle(rows: tuple, sink: np.ndarray | None = None) -> np.ndarray:
    """Return ``[heads, width]`` of the first batch item in float64."""
    q, k, v = rows
    row = (q[0].transpose(1, 0, 2), k[0][:, None], v[0][:, None])
    return materialized_attention(*row, scale=1.0, sink=sink, dtype=np.float64).out[0]


def negated_maximum() -> Finding:
    """Force the negated path by a sink of minus infinity; compare bit by bit."""
    rows = _draw(768)
    plain = decode_cached(*rows, tile=256).out
    turned = decode_cached(*rows, tile=256, sink=np.full(2, -np.inf)).out
    same = np.array_equal(plain, turned)
    off = float(np.abs(turned[0, :, :, 0] - _oracle(rows)).max())
    return Finding.of(
        same and off < 1e-5,
        "over 3 tiles of 256 keys the path with the negated maximum and the plain one "
        f"differ in {int((plain != turned).sum())} of {plain.size} numbers; the error "
        f"against float64 is {off:.0e}",
    )


def tiles_beyond_8192() -> Finding:
    """Read the tiles of four caches, and run one with 8,320 keys."""
    found = {}
    for lnc, slots in ((1, 8192), (1, 8320), (2, 16384), (2, 16640)):
        config = TkgConfig(curr_sprior=slots, full_sprior=slots)
        found[lnc, slots] = sizes_of(1, 2, 1, 16, config, lnc).tiles
    rows = _draw(8320)
    result = decode_cached(*rows)
    corrections = result.steps().get(("max", "activation"), 0)
    off = float(np.abs(result.out[0, :, :, 0] - _oracle(rows)).max())
    lengths = [len(tiles) for tiles in found.values()]
    listed = ", ".join(f"{s:,} on {c}: {t}" for (c, s), t in found.items())
    return Finding.of(
        lengths == [1, 2, 1, 2] and corrections == 1 and off < 1e-5,
        f"tiles of a core for keys on 1 or 2 cores: {listed}; over 8,320 keys "
        f"{corrections} correction runs and the error is {off:.0e}",
    )


def batch_or_cache_is_split() -> Finding:
    """Ask what two cores share, and which engines copy the mask."""
    calls = ((4, 40, 2048), (1, 8, 2048), (1, 8, 128))
    split = [shares(2, batch, heads, 1, slots) for batch, heads, slots in calls]
    names = {(True, False): "batch", (False, True): "slots", (False, False): "nothing"}
    trace = decode_cached(*_draw(256, batch=4)).traces[0]
    engines = [
        r.engine
        for r in trace
        if r.step == "mask" and r.op == "tensor_copy" and r.writes[0].dtype == np.uint8
    ]
    turns = engines == ["vector", "scalar"] * 2
    listed = "; ".join(
        f"batch {b}, {h} heads, {n:,} slots: {names[s]}"
        for (b, h, n), s in zip(calls, split, strict=True)
    )
    return Finding.of(
        turns and split[:2] == [(True, False), (False, True)],
        f"two cores split, {listed}, so that there both compute everything; the masks "
        f"of 4 batch items are copied by {', '.join(engines)}",
    )


def one_softmax_two_kernels() -> Finding:
    """Give one problem with a sink to both kernels."""
    rows = q, k, v = _draw(256)
    sink = np.float32([0.5, 2.0])
    want = _oracle(rows, sink)
    scale = float(np.abs(v).max())
    decode = decode_cached(*rows, sink=sink).out[0, :, :, 0]
    prefill = attention_cte(q[0], k, v, scale=1.0, causal=False, sink=sink[:, None])
    errors = [float(np.abs(x - want).max()) for x in (decode, prefill.out[:, 0])]
    return Finding.of(
        errors[0] < 1e-5 * scale and errors[1] < 2e-2 * scale,
        f"over 256 keys with a sink decode is {errors[0]:.0e} off, prefill, which "
        f"computes in bfloat16, {errors[1]:.0e}",
    )
