"""The roofline of decode, and the engine that works longest (chapter 16)."""

from collections.abc import Mapping

import numpy as np

from flashlib.experiments.decode_work import ITEMSIZE, KEYS, WIDTH, WORKERS, decode_work
from flashlib.machine import NC_V3
from flashlib.plots.ch16 import roofline
from flashlib.traffic import attainable_flops, attention_flops
from flashlib.widgets.figure import MovingFigure

GROUPS, TOKENS = (1, 2, 4, 8, 16, 32, 64, 128), (1, 2, 4)


def roofline_state(group: int, tokens: int) -> dict[str, object]:
    """Place one decode step under the roof, and list how long each engine works."""
    found = decode_work(group, tokens)
    intensity = found["flops"] / found["cache_bytes"]
    peak = NC_V3.peak_flops_per_ns(ITEMSIZE)
    bandwidth = NC_V3.dma_peak_bytes_per_ns()
    times = {name: round(found[name] / 1000, 3) for name in WORKERS}
    bound = max(times, key=times.__getitem__)
    return {
        "group": group,
        "tokens": tokens,
        "columns": group * tokens,
        "intensity": intensity,
        "ridge": round(peak / bandwidth, 1),
        "peak": round(peak / 1000, 2),
        "bandwidth": bandwidth,
        "roof": round(attainable_flops(intensity, peak, bandwidth) / 1000, 3),
        "reached": round(found["flops"] / (1000 * times[bound]) / 1000, 3),
        "times": times,
        "bound": bound,
    }


def roofline_words(state: Mapping[str, object]) -> str:
    """Say the intensity, the roof above it, and who works longest."""
    times = ", ".join(f"{name} {t:.2f}" for name, t in state["times"].items())
    side = "left" if state["intensity"] < state["ridge"] else "right"
    return (
        f"A group of {state['group']} and {_count(state['tokens'])}: "
        f"{_columns(state)} and {state['intensity']:g} flop per byte of "
        f"cache, {side} of the ridge at {state['ridge']:g}. The roof there is "
        f"{state['roof']:.2f} Tflop/s. Over {KEYS:,} keys the microseconds of work "
        f"are: {times}. The longest is {state['bound']}, which leaves "
        f"{state['reached']:.2f} Tflop/s at best."
    )


def _columns(state: Mapping[str, object]) -> str:
    count = state["columns"]
    return "1 column" if count == 1 else f"{count} columns"


def _count(tokens: int) -> str:
    return "1 token" if tokens == 1 else f"{tokens} tokens"


def roofline_check(state: Mapping[str, object], group: int, tokens: int) -> None:
    """Hold the run against the formulas for flop, bytes, loads and products."""
    columns, blocks = group * tokens, KEYS // 128
    found = decode_work(group, tokens)
    assert found["flops"] == attention_flops(tokens * KEYS, group, WIDTH)
    assert found["cache_bytes"] == 2 * KEYS * WIDTH * ITEMSIZE
    assert state["intensity"] == 2 * columns / ITEMSIZE
    run = WIDTH * ITEMSIZE
    rate = NC_V3.dma_peak_bytes_per_ns() * run / (run + NC_V3.dma_half_run_bytes)
    half = found["cache_bytes"] / 2
    loads = half / rate / NC_V3.dma_transpose_hbm + half / rate
    np.testing.assert_allclose(found["load K and V"], loads)
    pieces = [min(128, columns - i) for i in range(0, columns, 128)]
    cycles = 2 * max(64, columns) + sum(min(64, piece) for piece in pieces)
    np.testing.assert_allclose(found["products"], blocks * cycles / NC_V3.clock_tensor)
    assert found["products"] <= found["tensor"]
    assert state["bound"] == max(WORKERS, key=found.__getitem__)
    assert state["reached"] <= state["roof"]


def roofline_figure() -> MovingFigure:
    """Return the figure: intensity under the roof, and work by engine."""
    return MovingFigure(
        name="ch16-roofline",
        page="notebooks/16_decode_turned_sideways",
        caption=(
            "A decode step over 2,048 keys of width 128 in bfloat16 with one key and "
            "value head. Left: the roof of the machine, both axes logarithmic; the "
            "circle is the intensity of the step under the roof, the box what the "
            "engine that works longest leaves of it. Right: microseconds of work per "
            "engine, the longest in bold. More heads and more tokens move the circle "
            "to the right; the vector engine overtakes the loads long before the "
            "circle reaches the ridge."
        ),
        axes={"Group": GROUPS, "New tokens": TOKENS},
        state=roofline_state,
        picture=roofline,
        words=roofline_words,
        check=roofline_check,
        start=(3, 0),
    )


FIGURES = (roofline_figure,)
