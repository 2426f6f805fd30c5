"""Prefill and decode side by side: what every engine works (chapter 23)."""

from collections.abc import Mapping

from flashlib.experiments.two_kernels import HEADS, KEYS, WIDTH, side_by_side
from flashlib.plots.ch23 import shapes_picture
from flashlib.widgets.figure import MovingFigure


def shapes_state(keys: int) -> dict[str, object]:
    """Return the work, the products and the bytes of both kernels."""
    return {"keys": keys, **side_by_side(keys)}


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
    second = parts[1][0].upper() + parts[1][1:]
    return f"{state['keys']:,} keys: {parts[0]}. {second}."


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
            "a cache for eight heads and one token, and its traffic grows with the "
            "keys. Prefill answers as many queries as there are keys, and its matmul "
            "grows with the square."
        ),
        axes={"Keys": KEYS},
        state=shapes_state,
        picture=shapes_picture,
        words=shapes_words,
        check=shapes_check,
        start=(3,),
    )


FIGURES = (shapes_figure,)
