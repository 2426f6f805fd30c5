"""One key moves, and the weights of the row move with it (chapter 1)."""

from collections.abc import Mapping

import numpy as np

from flashlib.experiments.row_weights import weights_of
from flashlib.plots.ch01 import row_picture
from flashlib.reference import materialized_attention
from flashlib.row import KEYS, QUERY, VALUES
from flashlib.widgets.figure import MovingFigure

MOVED = 2
PLACES = (0, 1, 2, 3, 4)


def _attend(keys: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Answer the row's query with the package, in float64 and without scaling."""
    q, k, v = QUERY[None, None], keys[:, None], values[:, None]
    return materialized_attention(q, k, v, scale=1.0).out[0, 0]


def row_state(x: int, y: int) -> dict[str, object]:
    """Compute scores, weights and output of the row with key 2 at (x, y)."""
    keys = KEYS.copy()
    keys[MOVED] = x, y
    weights = _attend(keys, np.eye(6))
    return {
        "moved": MOVED,
        "keys": keys.astype(int).tolist(),
        "values": VALUES.astype(int).tolist(),
        "scores": (keys @ QUERY).astype(int).tolist(),
        "weights": [round(float(w), 5) for w in weights],
        "out": [round(float(o), 5) for o in _attend(keys, VALUES)],
    }


def row_words(state: Mapping[str, object]) -> str:
    """Say where key 2 is, and what the row makes of it."""
    x, y = state["keys"][MOVED]
    shown = ", ".join(f"{w:.4f}" for w in state["weights"])
    first, second = state["out"]
    return (
        f"Key {MOVED} at ({x}, {y}) has score {state['scores'][MOVED]}; the "
        f"weights of keys 0 to 5 are {shown}, and the output is "
        f"({first:.3f}, {second:.3f})."
    )


def row_check(state: Mapping[str, object], x: int, y: int) -> None:
    """Compare with the formula, and let the order of the keys change nothing."""
    keys = KEYS.copy()
    keys[MOVED] = x, y
    weights = weights_of(keys @ QUERY)
    np.testing.assert_allclose(state["weights"], weights, atol=1e-5)
    np.testing.assert_allclose(state["out"], weights @ VALUES, atol=1e-5)
    backwards = _attend(keys[::-1], VALUES[::-1])
    np.testing.assert_allclose(state["out"], backwards, atol=1e-5)


def row() -> MovingFigure:
    """Return the plane of keys, the weights, and the plane of values."""
    return MovingFigure(
        name="ch01-row",
        page="notebooks/01_attention_on_paper",
        caption=(
            "Left the query and the six keys, in the middle the weights, right the "
            "values with the output among them. Move key 2 along its dashed line: "
            "nothing changes. Move it across: every weight changes."
        ),
        axes={"x of key 2": PLACES, "y of key 2": PLACES},
        state=row_state,
        picture=row_picture,
        words=row_words,
        check=row_check,
        start=(PLACES.index(2), PLACES.index(0)),
    )


FIGURES = (row,)
