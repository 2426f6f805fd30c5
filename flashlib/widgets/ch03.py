"""The float cliff: one row of exponents slides along the number line (chapter 3)."""

from collections.abc import Mapping

import numpy as np

from flashlib.experiments.row_weights import (
    exact_softmax,
    shifted_softmax,
    weight_error,
)
from flashlib.plots.ch03 import cliff_picture
from flashlib.reference import materialized_attention
from flashlib.row import SCORES
from flashlib.widgets.figure import MovingFigure

OFFSETS = (
    *(-95, -92, -89, -88, -60, -30, 0, 30, 60, 80, 87, 90, 92, 94, 96, 98),
    *(99, 100, 101, 102, 103, 104, 110),
)


_WORDS = {"nan": "NaN", "inf": "inf", "-inf": "-inf"}


def cliff_state(offset: int) -> dict[str, object]:
    """Compute the row's terms and weights against ``r = max + offset``."""
    row = np.asarray(SCORES, dtype=np.float32)
    anchor = float(row.max()) + offset
    with np.errstate(all="ignore"):
        terms = np.exp(row - np.float32(anchor))
    error = weight_error(row, anchor)
    return {
        "offset": offset,
        "exponents": [float(score) - anchor for score in row],
        "terms": [_plain(term) for term in terms],
        "weights": [_plain(weight, 6) for weight in shifted_softmax(row, anchor)],
        "exact": [round(float(weight), 6) for weight in exact_softmax(row)],
        "survivors": int(np.count_nonzero(terms)),
        "digits": None if np.isnan(error) else round(max(0.0, -np.log10(error)), 1),
    }


def cliff_words(state: Mapping[str, object]) -> str:
    """Say what float32 makes of the row at one offset."""
    shift = state["offset"]
    where = f"r = max {'+' if shift > 0 else '-'} {abs(shift)}" if shift else "r = max"
    terms, weights = state["terms"], state["weights"]
    if state["digits"] is None and state["survivors"] == 0:
        return (
            f"{where}: all six exponents lie below the cliff, every exponential is 0, "
            "and 0/0 makes every weight NaN."
        )
    if state["digits"] is None:
        return (
            f"{where}: {terms.count('inf')} of 6 exponentials overflow to inf; the "
            f"weights come out as {_listed(weights)}, which is NaN for each key that "
            "overflowed."
        )
    alive = state["survivors"]
    verb = "is" if alive == 1 else "are"
    return (
        f"{where}: {alive} of 6 exponentials {verb} above 0; the weights come out as "
        f"{_listed(weights)} and are right to {state['digits']} digits."
    )


def cliff_check(state: Mapping[str, object], offset: int) -> None:
    """Compare with the package's own weights, and with the format's own limits."""
    exponents = np.asarray(state["exponents"], dtype=np.float64)
    spacing = float(np.finfo(np.float32).smallest_subnormal)
    with np.errstate(over="ignore"):
        fits = np.exp(exponents) <= float(np.finfo(np.float32).max)
    alive = int(np.count_nonzero(np.rint(np.exp(exponents) / spacing)))
    assert state["survivors"] == alive, (state["survivors"], alive)
    assert state["terms"].count("inf") == int(np.count_nonzero(~fits))
    broken = alive == 0 or not fits.all()
    assert (state["digits"] is None) == broken
    normal = np.exp(exponents) >= float(np.finfo(np.float32).smallest_normal)
    if fits.all() and normal.all():
        np.testing.assert_allclose(state["weights"], _packaged_weights(), rtol=1e-5)


def _packaged_weights() -> np.ndarray:
    """Read the weights off `materialized_attention`: values of one each show them."""
    k = np.asarray(SCORES, dtype=np.float32).reshape(6, 1, 1)
    q = np.ones((1, 1, 1), dtype=np.float32)
    v = np.eye(6, dtype=np.float32).reshape(6, 1, 6)
    return materialized_attention(q, k, v, scale=1.0).out[0, 0]


def _plain(value: np.float32, digits: int = 4) -> float | str:
    """Return a number that JSON can hold: NaN and inf as words."""
    return float(f"{value:.{digits}g}") if np.isfinite(value) else _WORDS[str(value)]


def _listed(weights: list) -> str:
    return ", ".join(w if isinstance(w, str) else f"{w:.4f}" for w in weights)


def cliff() -> MovingFigure:
    """Return the number line of the chapter."""
    return MovingFigure(
        name="ch03-cliff",
        page="notebooks/03_the_float_cliff",
        caption=(
            "The six exponents of the row on the number line of float32, and the "
            "weights that come out. Slide r away from the max and watch the keys fall "
            "off the cliff one by one."
        ),
        axes={"offset from the max": OFFSETS},
        state=cliff_state,
        picture=cliff_picture,
        words=cliff_words,
        check=cliff_check,
        start=(OFFSETS.index(0),),
        play=True,
    )


FIGURES = (cliff,)
