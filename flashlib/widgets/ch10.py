"""The histogram: operations before and after, for any number of layers (chapter 10)."""

from collections.abc import Mapping

from flashlib.experiments.histogram import NAMES, expected, traced
from flashlib.plots.ch10 import histogram_picture
from flashlib.widgets.figure import MovingFigure

LAYERS, TOKENS, HEADS = (1, 4, 8, 16, 28, 32), (1, 2, 3), 16
ENGINES = {"before": "materialized", "after": "flash"}


def histogram_state(tokens: int, layers: int) -> dict[str, object]:
    """Trace both engines on a narrow model of so many layers."""
    counts = {
        when: traced(layers, HEADS, tokens, engine) for when, engine in ENGINES.items()
    }
    return {
        "layers": layers,
        "tokens": tokens,
        "heads": HEADS,
        "rows": [[name, *(counts[when][name] for when in ENGINES)] for name in NAMES],
        "most": traced(LAYERS[-1], HEADS, TOKENS[-1], "materialized")["matmul"],
    }


def histogram_words(state: Mapping[str, object]) -> str:
    """Say every count before and after."""
    rows = "; ".join(
        f"{name} {before:,} before, {after:,} after"
        for name, before, after in state["rows"]
    )
    layers = "1 layer" if state["layers"] == 1 else f"{state['layers']} layers"
    tokens = "1 new token" if state["tokens"] == 1 else f"{state['tokens']} new tokens"
    return f"{layers} of {state['heads']} query heads, {tokens}: {rows}."


def histogram_check(state: Mapping[str, object], tokens: int, layers: int) -> None:
    """Compute the counts instead of tracing them."""
    for column, engine in enumerate(ENGINES.values(), 1):
        counts = expected(layers, HEADS, tokens, engine)
        assert {row[0]: row[column] for row in state["rows"]} == dict(counts)


def histogram_figure() -> MovingFigure:
    """Return the figure: two bars per operation, and a slider for the layers."""
    return MovingFigure(
        name="ch10-histogram",
        page="notebooks/10_the_histogram",
        caption=(
            "Calls of six operations while a model of 16 query heads reads a prompt "
            "and writes a few tokens. The upper bar of each pair is the engine that "
            "builds score matrices, the lower one, striped, the engine that streams. "
            "Add layers, and the bars keep their proportions. Add tokens, and only "
            "what every pass needs grows: the gap between the bars stays as it is."
        ),
        axes={"New tokens": TOKENS, "Layers": LAYERS},
        state=histogram_state,
        picture=histogram_picture,
        words=histogram_words,
        check=histogram_check,
        start=(1, 4),
        play=True,
    )


FIGURES = (histogram_figure,)
