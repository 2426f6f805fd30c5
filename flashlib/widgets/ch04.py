"""The scrubber: read a row key by key and watch its state (chapter 4)."""

from collections.abc import Mapping

import numpy as np

from flashlib.online_softmax import OnlineSoftmax, Step, walk
from flashlib.plots.ch04 import scrubber
from flashlib.reference import materialized_attention
from flashlib.row import SCORES, VALUES
from flashlib.widgets.figure import MovingFigure

ORDERS = {
    "as given": (0, 1, 2, 3, 4, 5),
    "rising": (5, 0, 2, 1, 4, 3),
    "falling": (3, 4, 1, 2, 0, 5),
}


def _row(order: str, read: int) -> tuple[np.ndarray, np.ndarray]:
    """Return scores and values of the keys read so far, in float32."""
    keys = list(ORDERS[order][:read])
    return SCORES[keys].astype(np.float32), VALUES[keys].astype(np.float32)


def _exact(keys: tuple[int, ...]) -> np.ndarray:
    """Return the weighted mean over some keys as float64 finds it in one go."""
    empty = OnlineSoftmax.identity(VALUES.shape[1], np.float64)
    return empty.update(SCORES[list(keys)], VALUES[list(keys)]).out


def scrubber_state(order: str, read: int) -> dict[str, object]:
    """Walk the first keys one by one in float32 and keep the last two states."""
    keys = ORDERS[order]
    scores, values = _row(order, read)
    steps = list(walk(scores, values, tile=1))
    last = steps[-1] if steps else None
    unit = np.finfo(np.float32).eps * np.abs(VALUES).max()
    state = {
        "order": order,
        "read": read,
        "keys": list(keys),
        "scores": [float(SCORES[j]) for j in keys],
        "m": float(last.after.m) if last else None,
        "corr": float(last.corr) if last else None,
        "rescaled": bool(last and last.rescaled),
        "rises": sum(step.rescaled for step in steps),
        "l": float(last.after.l) if last else 0.0,
        "acc": [float(a) for a in last.after.acc] if last else [0.0, 0.0],
        "p": _terms(scores, last.after.m) if last else [],
        "p_before": _terms(scores[:-1], last.before.m) if read > 1 else [],
    }
    out = last.after.out if last else np.zeros(2)
    state["out"] = [float(x) for x in out] if last else None
    state["error"] = float(np.abs(out - _exact(keys[:read])).max() / unit)
    state["distance"] = float(np.abs(out - _exact(keys)).max() / unit)
    state["lines"] = _lines(state, last)
    return state


def _terms(scores: np.ndarray, m: np.floating) -> list[float]:
    return [round(float(p), 6) for p in np.exp(scores - m)]


def _lines(state: Mapping[str, object], last: Step | None) -> list[list[str]]:
    """Write the state as label and value."""
    if last is None:
        blank = [["m", "−∞"], ["corr", "–"], ["ℓ", "0"], ["a", "(0, 0)"]]
        return [["after no key", ""], *blank, ["a / ℓ", "0 / 0: no answer"]]
    old = "−∞" if last.before.m == -np.inf else f"{float(last.before.m):g}"
    moved = last.after.m != last.before.m
    m = f"{old} → {state['m']:g}" if moved else f"stays {state['m']:g}"
    return [
        [f"after {_count(state['read'])}", ""],
        ["m", m],
        ["corr", f"e^({old} − {state['m']:g}) = {state['corr']:.3f}"],
        ["ℓ", f"{state['l']:.4f}"],
        ["a", _pair(state["acc"])],
        ["a / ℓ", _pair(state["out"])],
        ["against float64", ""],
        ["these keys", f"off by {state['error']:.2f} u"],
        ["whole row", _distance(state)],
        ["", ""],
        [f"rescales so far: {state['rises']}", ""],
    ]


def _distance(state: Mapping[str, object]) -> str:
    if state["read"] == len(state["scores"]):
        return f"off by {state['error']:.2f} u"
    return f"off by {state['distance']:,.0f} u"


def _pair(values: list[float]) -> str:
    return f"({', '.join(f'{x:.4f}' for x in values)})"


def _count(read: int) -> str:
    return "1 key" if read == 1 else f"{read} keys"


def scrubber_words(state: Mapping[str, object]) -> str:
    """Say the state, and whether the last key raised the max."""
    if not state["read"]:
        return (
            f"Order {state['order']}: nothing is read. The max m is minus infinity, "
            "the denominator l is 0 and the numerator a is (0, 0)."
        )
    key = state["keys"][state["read"] - 1]
    score = state["scores"][state["read"] - 1]
    if state["read"] == 1:
        what = f"sets m to {state['m']:g}; corr is 0, and there was nothing to rescale"
    elif state["rescaled"]:
        what = (
            f"raises m to {state['m']:g}, and every older term is multiplied by "
            f"corr = {state['corr']:.3f}"
        )
    else:
        what = f"leaves m at {state['m']:g}, and nothing is rescaled"
    return (
        f"Order {state['order']}: key {key} with score {score:g} {what}. "
        f"Now l = {state['l']:.4f}, a = {_pair(state['acc'])} and "
        f"a / l = {_pair(state['out'])}, "
        f"{state['error']:.2f} units from the float64 mean of the keys read and "
        f"{state['distance']:,.0f} from the answer of the whole row."
    )


def scrubber_check(state: Mapping[str, object], order: str, read: int) -> None:
    """Sum the same keys straight from the definition, and against attention."""
    keys = list(ORDERS[order][:read])
    assert sorted(state["keys"]) == list(range(6))
    if not keys:
        assert (state["m"], state["l"], state["acc"]) == (None, 0.0, [0.0, 0.0])
        return
    p = np.exp(SCORES[keys] - SCORES[keys].max())
    assert state["m"] == SCORES[keys].max()
    np.testing.assert_allclose(state["p"], p, atol=1e-6)
    np.testing.assert_allclose(state["l"], p.sum(), rtol=1e-6)
    np.testing.assert_allclose(state["acc"], p @ VALUES[keys], rtol=1e-6, atol=1e-6)
    assert 0.0 <= state["corr"] <= 1.0 and max(state["p"]) == 1.0
    np.testing.assert_allclose(state["out"], _attended(keys), rtol=1e-6, atol=1e-6)
    assert state["error"] <= 2.0
    rises = np.count_nonzero(np.diff(np.maximum.accumulate(SCORES[keys])))
    assert state["rises"] == rises


def _attended(keys: list[int]) -> np.ndarray:
    """Let the oracle answer: width-one queries and keys make the scores."""
    q, k = np.ones((1, 1, 1)), SCORES[keys][:, None, None]
    return materialized_attention(q, k, VALUES[keys][:, None], scale=1.0).out[0, 0]


def scrubber_figure() -> MovingFigure:
    """Return the flagship figure: the state of the row after each key."""
    return MovingFigure(
        name="ch04-scrubber",
        page="notebooks/04_online_softmax",
        caption=(
            "Move the keys. Orange is the key just read. When it lies above the dashed "
            "line, the line jumps and all older terms shrink by one factor; dashed "
            "outlines show where they were. After every key, a / ℓ is the right answer "
            "for the keys read so far, to the rounding of float32. The order of the "
            "keys changes how often the line jumps, not where the walk ends. One u is "
            "2⁻²³ times the largest value, the grain of float32."
        ),
        axes={"Order": tuple(ORDERS), "Keys read": tuple(range(7))},
        state=scrubber_state,
        picture=scrubber,
        words=scrubber_words,
        check=scrubber_check,
        start=(0, 4),
        play=True,
    )


FIGURES = (scrubber_figure,)
