"""Check what is claimed about the softmax across partitions (chapter 17)."""

import numpy as np

from flashlib.ledger.rows import Finding
from flashlib.machine import Machine, timeline
from flashlib.machine.dtypes import BFLOAT16
from flashlib.machine.isa_tensor import load_stationary_cycles
from flashlib.machine.trace import Record, Trace
from flashlib.programs import blocks, decode_tile

KEYS, WIDTH = 2048, 64
BLOCKS = KEYS // 128


def _trace(columns: int, dtype: type = BFLOAT16, width: int = WIDTH) -> Trace:
    rng = np.random.default_rng(17)
    shapes = (1, columns, width), (KEYS, 1, width), (KEYS, 1, width)
    return decode_tile(*(rng.standard_normal(s).astype(dtype) for s in shapes)).trace


def _of(trace: Trace, step: str, op: str) -> list[Record]:
    return [r for r in trace if r.step == step and r.op == op]


def sum_is_a_product() -> Finding:
    """Sum exponentials over keys by a product with ones, and in float64."""
    rng = np.random.default_rng(5)
    p = np.exp(-rng.random((128, BLOCKS, 8)) * 9).astype(BFLOAT16)
    m = Machine()
    got = blocks.sum_by_matmul(m, m.sbuf.put(p), "ones moving")
    want = p.astype(np.float64).sum(axis=(0, 1))
    off = float(np.abs(got / want - 1).max())
    counts = m.trace.histogram()
    products = counts["nc_matmul"]
    return Finding.of(
        off < 1e-6 and products == BLOCKS,
        f"{products} products of [128, 8] with a column of ones, and one sum of their "
        f"{BLOCKS} results, give the denominators of 8 columns over {KEYS:,} keys to "
        f"{off:.0e}",
    )


def max_is_a_cascade() -> Finding:
    """List the instructions of step 2 in their order."""
    ops = [(r.op, r.engine) for r in _trace(8) if r.step == "max" and r.engine != "dma"]
    names = [op for op, _ in ops]
    order = ["tensor_reduce", "nc_transpose", "tensor_reduce", "tensor_scalar"]
    return Finding.of(
        names[:4] == order,
        f"{len(names)} instructions: {', '.join(names)}; after reduce, transpose, "
        f"reduce and clamp, {len(names) - 4} more spread the result over the "
        "partitions again",
    )


def exponentials_in_the_input_type() -> Finding:
    """Read the types of scores and exponentials off runs in three types."""
    found = {}
    for dtype in (np.float32, np.float16, BFLOAT16):
        (record,) = _of(_trace(2, dtype), "exp", "activation")
        name = np.dtype(dtype).name
        found[name] = record.reads[0].dtype.name, record.writes[0].dtype.name
    holds = all(pair == ("float32", name) for name, pair in found.items())
    listed = "; ".join(f"{a} in, exp from {b} to {c}" for a, (b, c) in found.items())
    return Finding.of(holds, f"over {KEYS:,} keys: {listed}")


def sums_across_tiles_then_one_reciprocal() -> Finding:
    """Count what follows the products of the sum."""
    trace = _trace(8)
    products = _of(trace, "sum", "nc_matmul")
    (reduced,) = _of(trace, "sum", "tensor_reduce")
    reciprocals = _of(trace, "recip", "reciprocal")
    order = products[-1].index < reduced.index < reciprocals[0].index
    return Finding.of(
        order and len(products) == BLOCKS and len(reciprocals) == 1,
        f"{len(products)} products, then one sum over {reduced.reads[0].shape} and "
        f"{len(reciprocals)} reciprocal of {reciprocals[0].reads[0].shape}",
    )


def values_stand_still() -> Finding:
    """Look who stands still in the second product, and where the factor comes in."""
    trace = _trace(8)
    products = _of(trace, "mm2", "nc_matmul")
    still, moving = products[0].read("stationary"), products[0].read("moving")
    (flush,) = _of(trace, "mm2", "tensor_tensor")
    from_psum = flush.reads[0].memory == "psum" and flush.dst == "sbuf"
    shapes = still.shape == (128, WIDTH) and moving.shape == (128, 8)
    return Finding.of(
        shapes and from_psum and flush.index > products[-1].index,
        f"values {list(still.shape)} stand still, exponentials {list(moving.shape)} "
        f"move, {len(products)} products add up, and one instruction multiplies by the "
        f"reciprocal as it copies {list(flush.reads[0].shape)} from PSUM to SBUF; the "
        "path over several tiles is not part of this program",
    )


def nearly_free() -> Finding:
    """Count what the sum adds to the array, and what it has to load for it."""
    shares, loads = {}, 0.0
    for columns in (8, 64, 128):
        trace = _trace(columns, width=128)
        busy = timeline(trace)
        products = busy.busy("mm1", "mm2")["tensor"]
        shares[columns] = busy.busy("sum")["tensor"] / products
        still = [r.read("stationary") for r in _of(trace, "sum", "nc_matmul")]
        before = {
            r.read("stationary").tensor.id for r in _of(trace, "mm1", "nc_matmul")
        }
        anew = all(o.tensor.id not in before for o in still)
        loads = sum(load_stationary_cycles(r) for r in _of(trace, "sum", "nc_matmul"))
    listed = ", ".join(f"{share:.0%} at {c}" for c, share in shares.items())
    free = max(shares.values()) < 0.1
    return Finding.of(
        free and not anew,
        f"the array does not hold the exponentials: each of {BLOCKS} products loads "
        f"its block as a new stationary operand ({loads:,.0f} cycles in all at 128 "
        f"columns, hidden if something else moves meanwhile); their passes add "
        f"{listed} columns to those of the two other products, and a column of ones "
        "beside V adds nothing when V is narrower than 128",
    )
