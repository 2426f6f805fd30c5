"""Two bars and a line they cannot pass: what a gain saturates at (chapter 11)."""

from collections.abc import Mapping

import numpy as np

from flashlib.experiments.fit import Fit
from flashlib.experiments.published import LONG, RUNS, SHORT, fits
from flashlib.plots.ch11 import two_bars
from flashlib.widgets.figure import MovingFigure

LENGTHS = (64, 128, 256, 511, 1022, 2044, 4088, 8176, 16352, 32704)


def gain_state(backend: str, n: int) -> dict[str, object]:
    """Return both bars at `n` tokens, in percent of the time before.

    What is written out is rounded there, once.
    """
    before, after = fits(backend)
    percent = 100 / before.at(n)
    return {
        "backend": backend,
        "n": n,
        "quoted": n in (SHORT, LONG),
        "before": [percent * before.a * n, percent * before.b * n * n],
        "after": [percent * after.a * n, percent * after.b * n * n],
        "saved": _saved(before, after, n),
        "limit": 100 * (1 - after.b / before.b),
        "savings": [round(_saved(before, after, length), 2) for length in LENGTHS],
    }


def _saved(before: Fit, after: Fit, n: int) -> float:
    return 100 * (1 - after.at(n) / before.at(n))


def gain_words(state: Mapping[str, object]) -> str:
    """Say what the bars are made of, and how far the limit is."""
    kind = "quoted" if state["quoted"] else "by the fit"
    return (
        f"{state['backend']}, {state['n']:,} tokens ({kind}). Before, "
        f"{state['before'][1]:.0f}% of the time is square; after, the linear part "
        f"is {state['after'][0]:.0f} and the square part {state['after'][1]:.0f}% of "
        f"the old time. Saved: {state['saved']:.1f}%. No length saves more than "
        f"{state['limit']:.1f}%."
    )


def gain_check(state: Mapping[str, object], backend: str, n: int) -> None:
    """Solve for the terms another way, and go through Amdahl's form."""
    columns = np.array([[SHORT, SHORT**2], [LONG, LONG**2]], float)
    runs = RUNS[backend].values()
    a_old, b_old = np.linalg.solve(columns, [run.before for run in runs])
    a_new, b_new = np.linalg.solve(columns, [run.after for run in runs])
    share = b_old * n / (a_old + b_old * n)
    left = share * b_new / b_old + (1 - share) * a_new / a_old
    assert abs(100 * (1 - left) - state["saved"]) < 1e-9
    assert abs(state["before"][1] - 100 * share) < 1e-9
    assert state["saved"] < state["limit"]
    assert abs(state["limit"] - 100 * (1 - b_new / b_old)) < 1e-9
    assert state["savings"] == sorted(state["savings"])


def gain_figure() -> MovingFigure:
    """Return the figure: the bars before and after, and the line of the limit."""
    return MovingFigure(
        name="ch11-gain",
        page="notebooks/11_what_did_it_buy",
        caption=(
            "Left: the time before is 100%, and the time after stands beside it, each "
            "with a linear part (dashed frame) below and a square part above. The "
            "dashed line is the height that the bar after cannot sink below. Right: "
            "what is saved against the length. At 511 and 2,044 tokens the times are "
            "quoted, elsewhere a fit through them continues the story."
        ),
        axes={"Backend": tuple(RUNS), "Tokens": LENGTHS},
        state=gain_state,
        picture=two_bars,
        words=gain_words,
        check=gain_check,
        start=(1, 3),
        play=True,
    )


FIGURES = (gain_figure,)
