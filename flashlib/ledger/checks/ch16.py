"""Check what is claimed about decode, its bounds and its layout (chapter 16)."""

import math

import numpy as np

from flashlib.errors import ShapeError
from flashlib.ledger.rows import Finding
from flashlib.machine import NC_V3, Machine, timeline
from flashlib.machine.dtypes import BFLOAT16
from flashlib.machine.trace import Trace
from flashlib.programs import decode_tile
from flashlib.reference import materialized_attention
from flashlib.traffic import attention_flops, causal_pairs, intensity

KEYS, WIDTH = 1024, 128
STEPS = ("mm1", "max", "exp", "sum", "mm2")


def _qkv(columns: int, keys: int, width: int, dtype: type) -> list[np.ndarray]:
    rng = np.random.default_rng(16)
    shapes = (1, columns, width), (keys, 1, width), (keys, 1, width)
    return [rng.standard_normal(s).astype(dtype) for s in shapes]


def _trace(columns: int, keys: int = KEYS, dtype: type = BFLOAT16) -> Trace:
    return decode_tile(*_qkv(columns, keys, WIDTH, dtype)).trace


def _work(columns: int) -> dict[str, float]:
    """Return nanoseconds of work for the cache, and of each engine on chip."""
    line = timeline(_trace(columns))
    busy = line.busy()
    loads = line.busy("k_load", "v_load")["dma"]
    return {"dma": loads, **{x: busy[x] for x in ("tensor", "vector", "scalar")}}


def opposite_bounds() -> Finding:
    """Compare both intensities with the ridge, and a decode step with its engines."""
    ridge = NC_V3.peak_flops_per_ns() / NC_V3.dma_peak_bytes_per_ns()
    tokens, group = 2048, 8
    cache_bytes = 2 * tokens * WIDTH * 2
    prefill = intensity(
        attention_flops(causal_pairs(tokens), group, WIDTH), cache_bytes
    )
    decode = intensity(attention_flops(tokens, group, WIDTH), cache_bytes)
    work = _work(group)
    bound = max(work, key=work.__getitem__)
    return Finding.of(
        decode < ridge < prefill and bound == "dma",
        f"{group} query heads over {tokens:,} keys make {decode:g} flop per byte of "
        f"cache in decode and {prefill:,.0f} in causal prefill, and the ridge of the "
        f"machine is {ridge:.0f}; in the decode program loading the cache takes "
        f"{work['dma'] / work['tensor']:.1f} times as long as the tensor engine works",
    )


def bound_by_memory_always() -> Finding:
    """Raise the number of columns until something else works longer than the DMA."""
    work = {c: _work(c) for c in (1, 32, 64, 256, 512)}
    over = {
        engine: next((c for c in work if work[c][engine] > work[c]["dma"]), None)
        for engine in ("vector", "tensor")
    }
    always = over == {"vector": None, "tensor": None}
    return Finding.of(
        always,
        f"of {', '.join(map(str, work))} columns (group times new tokens) the vector "
        f"engine works longer than the loads from {over['vector']} on, and the tensor "
        f"engine from {over['tensor']} on; at 1 column the loads take "
        f"{work[1]['dma'] / work[1]['vector']:.1f} times as long as the vector engine",
    )


def query_in_one_pass() -> Finding:
    """Decode with more than 128 columns, and look how many passes a block takes."""
    columns, keys = 295, 256
    q, k, v = _qkv(columns, keys, 64, np.float32)
    result = decode_tile(q, k, v)
    off = np.abs(result.out - materialized_attention(q, k, v).out).max()
    counts = result.trace.histogram(by=("step", "op"))
    per_block = counts["mm1", "nc_matmul"] / (keys / 128)
    sums = counts["sum", "nc_matmul"] / (keys / 128)
    legal = off < 1e-5 and per_block == 1
    return Finding.of(
        not legal,
        f"{columns} columns go through in {per_block:g} product per block of keys, off "
        f"by {off:.0e}: queries move along the free axis, whose limit is 512; the 128 "
        f"binds the sum alone, which takes {sums:g} products per block here",
    )


def limit_of_grouped_heads() -> Finding:
    """Find the largest group that the program takes."""
    largest = 0
    for columns in (128, 129, 256, 512, 513):
        try:
            decode_tile(*_qkv(columns, 16, 8, np.float32))
        except ShapeError:
            break
        largest = columns
    return Finding.of(
        largest <= 128,
        f"groups of up to {largest} columns run, {columns} are refused: the limit is "
        "the width of one bank, 512 float32 numbers, and not the 128 partitions",
    )


def scores_lie_sideways() -> Finding:
    """Read off which axis of the scores lies on the partitions, and what crosses it."""
    trace = _trace(8)
    scores = {r.writes[0].shape[0] for r in trace if r.step == "exp"}
    crossing = [
        r.op
        for r in trace
        if r.step in ("max", "sum") and r.op in ("nc_transpose", "nc_matmul")
    ]
    products = crossing.count("nc_matmul")
    holds = scores == {128} and products == KEYS // 128 and "nc_transpose" in crossing
    return Finding.of(
        holds,
        f"scores and exponentials have keys on {max(scores)} partitions; the sum "
        f"crosses them by {products} products and no transpose, the max by "
        f"{crossing.count('nc_transpose')} transposes",
    )


def append_at_the_tail() -> Finding:
    """Put new keys at the tail of a cache, as the reference does, and compare."""
    q, k, v = _qkv(8, 200, 64, np.float32)
    new_k, new_v = k[-3:] + 1, v[-3:] - 1
    k[-3:], v[-3:] = new_k, new_v
    s = np.einsum("khd,qhd->kq", k.astype(np.float64), q.reshape(8, 1, 64)) / 8
    p = np.exp(s - s.max(axis=0))
    want = (p / p.sum(axis=0)).T @ v[:, 0]
    off = np.abs(decode_tile(q, k, v).out[0] - want).max()
    return Finding.of(
        off < 1e-6,
        f"with 3 new keys in the last of {len(k)} slots, and max and sum taken over "
        f"the slots of scores [{s.shape[0]}, {s.shape[1]}], the machine differs from "
        f"the reference by {off:.0e}",
    )


def five_steps_in_psum() -> Finding:
    """List the steps of a run and the memory that each of them writes."""
    trace = _trace(8)
    order = [s for s in dict.fromkeys(r.step for r in trace) if s in STEPS]
    staged = {r.step for r in trace if r.dst == "psum"} & set(STEPS)
    outside = [step for step in STEPS if step not in staged]
    return Finding.of(
        tuple(order) == STEPS and not outside,
        f"the steps run in the order {', '.join(order)}; {len(staged)} of "
        f"{len(STEPS)} write PSUM, and {' and '.join(outside) or 'none'} does not: "
        "its operands and its result lie in SBUF",
    )


def rotation_and_scale_on_chip() -> Finding:
    """Rotate and scale queries between load and first product, and count."""
    columns, position = 8, 3.0
    q, k, _ = _qkv(columns, 128, WIDTH, np.float32)
    half = WIDTH // 2
    freqs = 10_000.0 ** (-np.arange(half) / half)
    m = Machine()
    tile, freq = m.sbuf.put(q[0].T), m.sbuf.put(np.float32(freqs)[:, None])
    _rotate(m, tile, freq, position)
    m.isa.activation(tile, "copy", tile, scale=1 / math.sqrt(WIDTH))
    before = len(m.trace)
    scores = m.psum.alloc((128, columns))
    m.isa.nc_matmul(scores, m.sbuf.put(k[:, 0].T), tile)
    cos, sin = np.cos(position * freqs), np.sin(position * freqs)
    low, high = q[0, :, :half], q[0, :, half:]
    turned = np.concatenate([low * cos - high * sin, high * cos + low * sin], axis=1)
    off = np.abs(scores.numpy() - k[:, 0] @ turned.T / math.sqrt(WIDTH)).max()
    return Finding.of(
        off < 1e-5 and m.trace.bytes() == 0,
        f"{before - 1} instructions rotate {columns} queries on chip and 1 scales "
        f"them, with {m.trace.bytes()} bytes of DMA; the scores differ from those of "
        f"queries rotated beforehand by {off:.0e}",
    )


def _rotate(m: Machine, q: object, freq: object, position: float) -> None:
    """Rotate the halves of each column of q against each other, in place."""
    half = freq.shape[0]
    cos, sin = m.sbuf.alloc((2 * half, 1)), m.sbuf.alloc((2 * half, 1))
    for window in (slice(0, half), slice(half, 2 * half)):
        m.isa.activation(sin[window], "sin", freq, scale=position)
        m.isa.activation(cos[window], "sin", freq, bias=np.pi / 2, scale=-position)
    other = m.sbuf.alloc(q.shape)
    m.isa.tensor_scalar(other[:half], q[half:], "multiply", -1.0)
    m.isa.tensor_copy(other[half:], q[:half])
    m.isa.tensor_scalar(q, q, "multiply", cos)
    m.isa.scalar_tensor_tensor(q, other, "multiply", sin, "add", q)


def keys_stand_still() -> Finding:
    """Look who stands still in the first product, and append on chip."""
    trace = _trace(8, 128)
    first = next(r for r in trace if r.op == "nc_matmul")
    still, moving = first.read("stationary"), first.read("moving")
    m = Machine()
    cache = m.hbm.put(np.zeros((WIDTH, 128), np.float32))
    new = m.sbuf.put(np.ones((WIDTH, 1), np.float32))
    keys = m.isa.dma_copy(m.sbuf.alloc((WIDTH, 128)), cache)
    m.isa.tensor_copy(keys[:, 127:], new)
    grown = int(keys.numpy().any(axis=0).sum())
    kept = not cache.numpy().any()
    holds = still.shape == (WIDTH, 128) and moving.shape == (WIDTH, 8)
    return Finding.of(
        holds and grown == 1 and kept,
        f"keys {list(still.shape)} stand still and queries {list(moving.shape)} move; "
        f"one copy puts {grown} new key at the tail of the tile in SBUF and changes "
        f"{0 if kept else 1} bytes of the cache in HBM; one tile is the last tile here",
    )
