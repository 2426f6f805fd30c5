"""The ladder under the roof: rungs as they were measured (chapter 9)."""

from collections.abc import Mapping
from functools import cache

import numpy as np

from flashlib.experiments.shapes import flop_per_byte
from flashlib.measure.record import Row, cores_text, read
from flashlib.plots.ch09 import ladder_roof
from flashlib.traffic import (
    ENGINE_PASSES,
    attainable_flops,
    attention_flops,
    causal_pairs,
)
from flashlib.widgets.figure import MovingFigure

N, N_HEADS, WIDTH = 511, 16, 128
RUNGS = ("blas", "numpy", "scalar", "simd", "pool", "tiles", "blocked")
STEPS = {
    "blas": "two matrix products per head, the score matrix between them",
    "numpy": "tiles of keys against blocks of 256 rows, NumPy calls",
    "scalar": "the loop of the text, one row at a time, compiled",
    "simd": "the same, dot products in four sums",
    "pool": "the same, every head on the next free core",
    "tiles": "32 query rows as lanes, scores transposed, plain loops",
    "blocked": "register tiles, packed keys, exp as a polynomial",
}


@cache
def _measured() -> dict[str, object]:
    return read("ladder")


def _cores() -> tuple[int, ...]:
    return tuple(sorted(map(int, _measured()["peaks"])))


def rows_of(cores: int) -> dict[str, Row]:
    """Return the measured rows on so many cores by the name of the rung."""
    rows = _measured()["rows"]
    return {row.name: row for row in rows if (row.seq, row.cores) == (N, cores)}


def rung_intensity(rung: str) -> float:
    """Return flop per byte of keys, values and, where there is one, score matrix."""
    if rung == "blas":
        return flop_per_byte(N, N, WIDTH, ENGINE_PASSES)
    return flop_per_byte(N, _measured()["rows_to_share"][rung], WIDTH)


def ladder_state(cores: int, rung: str) -> dict[str, object]:
    """Place one rung under the roof, among the speeds of all."""
    rows, peak = rows_of(cores), _measured()["peaks"][str(cores)]
    bandwidth, intensity = _measured()["bandwidths"][str(cores)], rung_intensity(rung)
    return {
        "cores": cores,
        "on": cores_text(cores),
        "rung": rung,
        "step": STEPS[rung],
        "rates": {name: round(rows[name].rate, 1) for name in RUNGS},
        "peak": peak,  # rounded once, where it is written
        "bandwidth": round(bandwidth, 1),
        "share": rows[rung].rate / peak,
        "ratio": None if rows[rung].ratio is None else round(rows[rung].ratio, 2),
        "intensity": round(intensity, 1),
        "roof": attainable_flops(intensity, peak, bandwidth),
    }


def ladder_words(state: Mapping[str, object]) -> str:
    """Say the step, the speed, and how far both ceilings are."""
    peer = "" if state["ratio"] is None else f", {state['ratio']:.2f} times PyTorch"
    return (
        f"{state['rung']} on {state['on']}: {state['step']}. "
        f"{state['rates'][state['rung']]:.1f} Gflop/s, {state['share']:.0%} of the "
        f"peak of {state['peak']:.0f}{peer}. It asks for a byte of keys, values or "
        f"scores every {state['intensity']:g} flop; if all of them came from memory, "
        f"the roof would be {state['roof']:.1f} Gflop/s."
    )


def ladder_check(state: Mapping[str, object], cores: int, rung: str) -> None:
    """Compute speeds again from milliseconds, and bytes by counting pairs."""
    rows, flops = rows_of(cores), attention_flops(causal_pairs(N), N_HEADS, WIDTH)
    for name in RUNGS:
        rate = flops / (1e-3 * rows[name].milliseconds) / 1e9
        np.testing.assert_allclose(state["rates"][name], rate, atol=0.051)
    if rung not in ("blas", "numpy"):
        rows_to_share = _measured()["rows_to_share"][rung]
        assert state["intensity"] == 2 * WIDTH * 2 * rows_to_share / (2 * WIDTH * 4)
    assert state["roof"] <= state["peak"]
    memory = state["intensity"] * state["bandwidth"]
    np.testing.assert_allclose(
        state["roof"], min(state["peak"], memory), rtol=0.02, atol=0.1
    )


def ladder_figure() -> MovingFigure:
    """Return the figure: seven rungs as bars, and one of them under the roof."""
    return MovingFigure(
        name="ch09-ladder",
        page="notebooks/09_from_loops_to_peak",
        caption=(
            "A causal prefill of 511 tokens, 16 query heads over 8 KV heads of width "
            "128, as it was measured on the machine above. Left: Gflop/s of every "
            "rung, the line is the peak. Right: the chosen rung under the roof, both "
            "axes logarithmic. The circle is the roof over its intensity if every byte "
            "came from memory, the box is its speed; a box above the circle lives "
            "on caches. Grouping rows moves the circle to the right, and only then "
            "is there something to win."
        ),
        axes={"Cores": _cores(), "Rung": RUNGS},
        state=ladder_state,
        picture=ladder_roof,
        words=ladder_words,
        check=ladder_check,
        start=(0, len(RUNGS) - 1),
    )


FIGURES = (ladder_figure,)
