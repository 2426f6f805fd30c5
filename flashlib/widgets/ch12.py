"""A verdict from two sliders: how strong, and how well fed (chapter 12)."""

from collections.abc import Mapping

from flashlib.experiments.break_even import break_even, weigh
from flashlib.plots.ch12 import scales
from flashlib.traffic import (
    TEXT_PASSES,
    attention_flops,
    causal_pairs,
    crossings,
    score_bytes,
)
from flashlib.widgets.figure import MovingFigure

RATIOS = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 1.0, 2.0)
BALANCES = (0, 5, 10, 20, 50, 100, 200)


def scales_state(compute_ratio: float, balance: int) -> dict[str, object]:
    """Return both times at one point, and where each balance breaks even."""
    found = weigh(compute_ratio, balance)
    return {
        "ratio": compute_ratio,
        "balance": balance,
        "traffic": round(found.traffic, 3),
        "streaming": round(found.streaming, 3),
        "edge": round(break_even(balance), 3),
        "wins": found.flash_wins,
        "from": [
            sum(not weigh(ratio, column).flash_wins for ratio in RATIOS)
            for column in BALANCES
        ],
        "ratios": list(RATIOS),
        "balances": list(BALANCES),
    }


def scales_words(state: Mapping[str, object]) -> str:
    """Say both times, the verdict, and the ratio at which it turns."""
    verdict = "streaming wins" if state["wins"] else "the matrix wins"
    return (
        f"Streaming computes {state['ratio']:g} times as fast as the matrix hardware, "
        f"which does {state['balance']:,} operations per byte. In units of the "
        f"matrix's arithmetic its traffic takes {state['traffic']:.2f}, together "
        f"{1 + state['traffic']:.2f}, and streaming takes {state['streaming']:.2f}: "
        f"{verdict}. Streaming wins above a ratio of {state['edge']:.2f}."
    )


def scales_check(
    state: Mapping[str, object], compute_ratio: float, balance: int
) -> None:
    """Go through seconds of a long prompt on a machine with that balance."""
    n, rate = 100_000, 1e12
    flops = attention_flops(n * n, 1, 128)
    moved = crossings(TEXT_PASSES) * score_bytes(n)
    matrix = flops / rate + (moved * balance / rate)
    visited = attention_flops(causal_pairs(n), 1, 128)
    streaming = visited / (rate * compute_ratio)
    assert (streaming < matrix) == state["wins"]
    assert abs(streaming * rate / flops - state["streaming"]) < 1e-3 / compute_ratio
    assert abs(matrix * rate / flops - 1 - state["traffic"]) < 1e-3
    assert (compute_ratio > state["edge"]) == state["wins"]


def scales_figure() -> MovingFigure:
    """Return the figure: two times and the map of verdicts."""
    return MovingFigure(
        name="ch12-scales",
        page="notebooks/12_the_backend_that_said_no",
        caption=(
            "Left: the time of the matrix, arithmetic and traffic, and the time of the "
            "streaming loop that visits half the pairs. Right: the verdict at every "
            "setting of the sliders; streaming wins where the column is filled, and "
            "the circle is where you stand. A length is no part of it."
        ),
        axes={"Compute ratio": RATIOS, "Operations per byte": BALANCES},
        state=scales_state,
        picture=scales,
        words=scales_words,
        check=scales_check,
        start=(3, 2),
    )


FIGURES = (scales_figure,)
