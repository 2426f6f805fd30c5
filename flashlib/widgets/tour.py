"""The figure of the two-minute tour: a megabyte becomes 256 bytes (book)."""

from collections.abc import Mapping

import numpy as np

from flashlib.plots.tour import bytes_on_a_log_scale
from flashlib.traffic import flash_state_bytes, score_bytes
from flashlib.widgets.figure import MovingFigure

TILE = 64
HEAD_DIM = 128
TOKENS = (8, 64, 128, 256, 511, 1024, 2044, 4096, 8192, 16384, 32768)


def bytes_state(tokens: int) -> dict[str, object]:
    """Count the bytes of both ways to answer every row of one head, in float32."""
    matrix, state = score_bytes(tokens), flash_state_bytes(TILE, HEAD_DIM)
    return {
        "tokens": tokens,
        "matrix_bytes": matrix,
        "tile_bytes": state.scores,
        "numerator_bytes": state.acc,
        "ratio": matrix / sum(state),
    }


def bytes_words(state: Mapping[str, object]) -> str:
    """Say the bytes and their ratio."""
    ratio = state["ratio"]
    share = f"1/{ratio:,.0f} of" if ratio > 1 else f"{1 / ratio:.3g} times as much as"
    return (
        f"At {state['tokens']:,} tokens the score matrix of one head takes "
        f"{state['matrix_bytes']:,} B. One tile of scores takes "
        f"{state['tile_bytes']:,} B and the running numerator "
        f"{state['numerator_bytes']:,} B, together {share} the matrix."
    )


def bytes_check(state: Mapping[str, object], tokens: int) -> None:
    """Let NumPy count the same bytes from shapes, without allocating them."""
    zero = np.float32(0)
    matrix = np.broadcast_to(zero, (tokens, tokens)).nbytes
    tile = np.broadcast_to(zero, TILE).nbytes
    numerator = np.broadcast_to(zero, HEAD_DIM).nbytes
    assert state["matrix_bytes"] == matrix
    assert (state["tile_bytes"], state["numerator_bytes"]) == (tile, numerator)
    assert state["ratio"] * (tile + numerator) == matrix


def bytes_figure() -> MovingFigure:
    """Return the figure: a score matrix against the state that replaces it."""
    return MovingFigure(
        name="tour-bytes",
        page="notebooks/00_two_minute_tour",
        caption=(
            "Each grid line is ten times the one before it. Move the slider: the "
            "score matrix of one head grows with the square of the prompt, and the two "
            "buffers of flash attention stay where they are."
        ),
        axes={"Tokens": TOKENS},
        state=bytes_state,
        picture=bytes_on_a_log_scale,
        words=bytes_words,
        check=bytes_check,
        start=(TOKENS.index(511),),
    )


FIGURES = (bytes_figure,)
