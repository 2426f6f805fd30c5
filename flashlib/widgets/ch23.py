"""Prefill and decode side by side: what every engine works (chapter 23)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import ml_dtypes
import numpy as np

from flashlib.exercises.ch23 import TRAFFIC, prefill
from flashlib.machine import timeline
from flashlib.machine.trace import Trace
from flashlib.plots.ch23 import shapes_picture
from flashlib.programs.cache_call import decode_cached
from flashlib.widgets.figure import MovingFigure

HEADS, WIDTH = 8, 128
KEYS = (256, 512, 1024, 2048)
LOADS = ("k_load", "v_load", "store")


@cache
def decode(keys: int) -> Trace:
    """Run one decode step of eight heads in bfloat16; return its trace."""
    rng = np.random.default_rng(23)
    q = rng.standard_normal((1, HEADS, 1, WIDTH)).astype(ml_dtypes.bfloat16)
    k, v = rng.standard_normal((2, 1, keys, WIDTH)).astype(ml_dtypes.bfloat16)
    return decode_cached(q, k, v).traces[0]


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


def shapes_state(keys: int) -> dict[str, object]:
    """Return the work, the products and the bytes of both kernels."""
    kernels = {}
    for name, trace, traffic in (
        ("decode", decode(keys), LOADS),
        ("prefill", prefill(keys), TRAFFIC),
    ):
        counts = trace.histogram(by=("step", "op"))
        nbytes = trace.bytes(src="hbm") + trace.bytes(dst="hbm")
        flops = trace.flops("mm1") + trace.flops("mm2")
        if name == "decode":
            # the strided layout multiplies more than anyone reads
            flops = 4 * HEADS * WIDTH * keys
        kernels[name] = {
            "work": work_of(trace, traffic),
            "products": [counts[step, "nc_matmul"] for step in ("mm1", "mm2")],
            "bytes": nbytes,
            "intensity": round(flops / nbytes, 1),
        }
    return {"keys": keys, **kernels}


def shapes_words(state: Mapping[str, object]) -> str:
    """Say what each kernel works on, and how many operations a byte brings."""
    parts = []
    for name, who in (("decode", "eight heads, one token"), ("prefill", "one head")):
        own = state[name]
        work = ", ".join(f"{part} {us:g}" for part, us in own["work"].items() if us)
        parts.append(
            f"{name} ({who}) has {own['products'][0]} products for scores and "
            f"{own['products'][1]} for outputs, {own['bytes']:,} bytes and "
            f"{own['intensity']:g} operations per byte; work in µs: {work}"
        )
    return f"{state['keys']:,} keys: {parts[0]}. {parts[1].capitalize()}."


def shapes_check(state: Mapping[str, object], keys: int) -> None:
    """Hold products and bytes against formulas."""
    groups = keys // 128
    scores = sum(-(-g // 4) for g in range(1, groups + 1))
    want = [scores, groups * (groups + 1) // 2]
    assert state["prefill"]["products"] == want
    # the strided layout issues at least 32
    assert state["decode"]["products"] == [max(groups, 32), groups]
    rows = 2 * keys * WIDTH * 2
    assert 0 <= state["decode"]["bytes"] - rows <= 3 * 2 * WIDTH * HEADS
    statistics = 2 * 4 * keys
    assert state["prefill"]["bytes"] == 2 * rows + statistics


def shapes_figure() -> MovingFigure:
    """Return the figure: two bar charts, one slider."""
    return MovingFigure(
        name="ch23-shapes",
        page="notebooks/23_same_math_opposite_shapes",
        caption=(
            "Work of the two kernels in µs, each chart to its own scale. Decode reads "
            "a cache for eight heads and one token; its bars grow together. Prefill "
            "answers as many queries as there are keys, and its matmul grows with the "
            "square."
        ),
        axes={"Keys": KEYS},
        state=shapes_state,
        picture=shapes_picture,
        words=shapes_words,
        check=shapes_check,
        start=(3,),
    )


FIGURES = (shapes_figure,)
