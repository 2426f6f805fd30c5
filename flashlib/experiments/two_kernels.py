"""Run the decode kernel and the prefill kernel, and compare their work (chapter 23)."""

from functools import cache

import numpy as np

from flashlib.machine import timeline
from flashlib.machine.dtypes import BFLOAT16
from flashlib.machine.trace import Trace
from flashlib.programs.attention_cte import attention_cte
from flashlib.programs.cache_call import decode_cached

__all__ = [
    "HEADS",
    "KEYS",
    "WIDTH",
    "decode_trace",
    "prefill_times",
    "prefill_trace",
    "side_by_side",
    "work_of",
]

HEADS, WIDTH = 8, 128
KEYS = (256, 512, 1024, 2048)
# Steps that move data between HBM and the chip, in decode and in prefill.
DECODE_TRAFFIC = ("k_load", "v_load", "store")
PREFILL_TRAFFIC = ("k_load", "v_load", "q_load", "store")


@cache
def decode_trace(keys: int, heads: int = HEADS) -> Trace:
    """Run one decode step in bfloat16 on one core; return its trace."""
    rng = np.random.default_rng(23)
    q = rng.standard_normal((1, heads, 1, WIDTH)).astype(BFLOAT16)
    k, v = rng.standard_normal((2, 1, keys, WIDTH)).astype(BFLOAT16)
    return decode_cached(q, k, v).traces[0]


@cache
def prefill_trace(keys: int) -> Trace:
    """Run a causal prompt of one head in bfloat16; return its trace."""
    rng = np.random.default_rng(23)
    q, k, v = rng.standard_normal((3, 1, keys, WIDTH)).astype(BFLOAT16)
    return attention_cte(q, k, v).traces[0]


def prefill_times(keys: int) -> tuple[float, float]:
    """Return ns of work of the matmul, and ns of traffic with memory."""
    line = timeline(prefill_trace(keys))
    return line.busy()["tensor"], line.busy(*PREFILL_TRAFFIC)["dma"]


def work_of(trace: Trace, traffic: tuple[str, ...]) -> dict[str, float]:
    """Return µs of work: traffic with memory, transposes of p, and three engines."""
    line = timeline(trace)
    busy = line.busy()
    found = {
        "HBM traffic": line.busy(*traffic)["dma"],
        "turning p": line.busy("transpose")["dma"],
        "matmul": busy["tensor"],
        "vector": busy["vector"],
        "scalar": busy["scalar"],
    }
    return {name: round(ns / 1000, 2) for name, ns in found.items()}


def side_by_side(keys: int) -> dict[str, dict]:
    """Return work, products, bytes and operations per byte of both kernels."""
    decode, prefill = decode_trace(keys), prefill_trace(keys)
    # The strided layout of decode multiplies more than anyone reads.
    needed = 4 * HEADS * WIDTH * keys
    done = prefill.flops("mm1") + prefill.flops("mm2")
    return {
        "decode": _facts(decode, DECODE_TRAFFIC, needed),
        "prefill": _facts(prefill, PREFILL_TRAFFIC, done),
    }


def _facts(trace: Trace, traffic: tuple[str, ...], flops: int) -> dict[str, object]:
    """Return what both kernels are compared by."""
    counts = trace.histogram(by=("step", "op"))
    nbytes = trace.bytes(src="hbm") + trace.bytes(dst="hbm")
    return {
        "work": work_of(trace, traffic),
        "products": [counts[step, "nc_matmul"] for step in ("mm1", "mm2")],
        "bytes": nbytes,
        "intensity": round(flops / nbytes, 1),
    }
