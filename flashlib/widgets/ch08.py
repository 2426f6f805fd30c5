"""The mutation matrix: change a test, and see which mutants live (chapter 8)."""

from collections.abc import Mapping
from functools import cache

import numpy as np

from flashlib.contract.dense import dense
from flashlib.mutants import MUTANTS, PlainLoop
from flashlib.plots.ch08 import mutation_matrix
from flashlib.reference import materialized_attention
from flashlib.testing import error_report
from flashlib.widgets.figure import MovingFigure

LENGTHS = (1, 17, 63, 64, 65, 100, 127, 128, 129)
PUBLISHED = (1, 17, 100)
SHOWN = (
    "no_max",
    "no_rescale_l",
    "no_rescale_acc",
    "ge_for_gt",
    "base_2_lse",
    "no_reset",
    "dropped_last_tile",
    "half_weights",
    "short_exp",
    "floored_exponent",
    "off_by_one",
    "top_left_causal",
)
INPUTS = {
    "published": "square, causal, numbers from -1 to 1",
    "hot": "square, causal, queries 256 times as large",
    "one row": "1 query over n keys, numbers from -1 to 1",
    "rising": "1 query over n keys, every score above the last",
    "last four": "last 4 queries over n keys, causal",
    "hidden": "1 query over n keys, the first 64 keys masked",
    "NaN row": "4 queries over n keys, the first of them NaN",
}
JUDGES = {
    "out 1e-4": "out within 1e-4 of the float32 score matrix",
    "out units": "out within twice the error of plain float32, plus 1 u",
    "out, lse": "out in units, and lse to 4e-6",
}
WIDTH = 16


def call(inputs: str, n: int) -> tuple[tuple[np.ndarray, ...], dict[str, object]]:
    """Return q, k, v of one head, and the options, of one test at one length."""
    rng = np.random.default_rng(n)
    rows = {"published": n, "hot": n, "last four": min(4, n), "NaN row": 4}
    shapes = (rows.get(inputs, 1), n, n)
    q, k, v = (rng.uniform(-1, 1, (x, 1, WIDTH)).astype(np.float32) for x in shapes)
    if inputs == "hot":
        q *= 256
    if inputs == "rising":
        q[:], k[..., 0] = np.eye(WIDTH, dtype=np.float32)[0], np.arange(n)[:, None]
    if inputs == "NaN row":
        q[0] = np.nan
    if inputs == "hidden":
        return (q, k, v), {"mask": (np.arange(n) >= 64)[None]}
    return (q, k, v), {"causal": inputs in ("published", "hot", "last four")}


def _gap(got: np.ndarray, want: np.ndarray) -> float:
    """Return the largest difference; a NaN where one belongs is none."""
    alike = np.isnan(got) & np.isnan(want)
    gap = np.where(alike, 0, np.abs(got - want))
    return float(np.where(np.isnan(gap), np.inf, gap).max(initial=0))


def verdicts(attention: object, inputs: str, n: int) -> tuple[bool, ...]:
    """Say for each of the three judges whether one call is refused."""
    (q, k, v), options = call(inputs, n)
    got = attention(q, k, v, **options)
    reference = materialized_attention(q, k, v, **options)
    report = error_report(got, q, k, v, **options)
    return (
        not _gap(got.out, reference.out) < 1e-4,
        not report.out <= report.allowed,
        not report.ok,
    )


@cache
def _killed(inputs: str) -> dict[str, list[tuple[bool, ...]]]:
    """Run every shown mutant over every length with one kind of inputs."""
    with np.errstate(all="ignore"):
        return {
            name: [verdicts(MUTANTS[name].attention, inputs, n) for n in LENGTHS]
            for name in SHOWN
        }


def matrix_state(inputs: str, judge: str) -> dict[str, object]:
    """Return which length catches which mutant under one test."""
    which = list(JUDGES).index(judge)
    caught = {
        name: [n for n, refused in zip(LENGTHS, row, strict=True) if refused[which]]
        for name, row in _killed(inputs).items()
    }
    alive = [name for name, lengths in caught.items() if not lengths]
    three = [name for name, ns in caught.items() if not set(ns) & set(PUBLISHED)]
    return {
        "inputs": inputs,
        "judge": judge,
        "lengths": list(LENGTHS),
        "bold": list(PUBLISHED),
        "caught": caught,
        "alive": alive,
        "title": INPUTS[inputs],
        "rule": JUDGES[judge],
        "count": (
            f"{len(alive)} of {len(SHOWN)} live; at lengths 1, 17, 100 alone, "
            f"{len(three)}"
        ),
    }


def matrix_words(state: Mapping[str, object]) -> str:
    """Say the test, who survives it, and where the others fall."""
    killed = {name: ns for name, ns in state["caught"].items() if ns}
    falls = "; ".join(f"{name} at {_lengths(ns)}" for name, ns in killed.items())
    alive = ", ".join(state["alive"]) or "none"
    return (
        f"Inputs: {state['title']}. Judged by: {state['rule']}. "
        f"{len(state['alive'])} of {len(state['caught'])} mutants live: {alive}. "
        f"Caught: {falls or 'none'}."
    )


def _lengths(ns: list[int]) -> str:
    return "every length" if len(ns) == len(LENGTHS) else ", ".join(map(str, ns))


def matrix_check(state: Mapping[str, object], inputs: str, judge: str) -> None:
    """Judge again, against the museum's own dense attention; spare the right loop."""
    right = [verdicts(PlainLoop(), inputs, n) for n in LENGTHS]
    assert not np.any(right), "the right loop was refused"
    for name, caught in state["caught"].items():
        for n in LENGTHS if judge == "out 1e-4" and inputs != "NaN row" else ():
            (q, k, v), options = call(inputs, n)
            with np.errstate(all="ignore"):
                got = MUTANTS[name].attention(q, k, v, **options).out
            gap = _gap(got, dense(q, k, v, **options).out)
            assert (gap > 1e-4) == (n in caught), (name, n, gap)
    assert set(state["alive"]) == {x for x, ns in state["caught"].items() if not ns}


def matrix_figure() -> MovingFigure:
    """Return the figure: twelve mutants, nine lengths, and a test to choose."""
    return MovingFigure(
        name="ch08-mutation-matrix",
        page="notebooks/08_pinned_to_the_reference",
        caption=(
            "A row is a wrong kernel, a column a length; a filled cell means that this "
            "test at this length refuses it. Bold lengths are the published ones. "
            "Change what goes in and how the result is judged: the survivors change "
            "with every setting, and no setting refuses all twelve."
        ),
        axes={"Inputs": tuple(INPUTS), "Judged by": tuple(JUDGES)},
        state=matrix_state,
        picture=mutation_matrix,
        words=matrix_words,
        check=matrix_check,
    )


FIGURES = (matrix_figure,)
