"""Margins against disturbances: every step of some texts on one map (chapter 13)."""

import math
from collections import Counter
from collections.abc import Mapping

import numpy as np

from flashlib.experiments.disturb import CHANGES, disturbances, logits, prompts
from flashlib.plots.ch13 import margin_map
from flashlib.widgets.figure import MovingFigure

TEXTS = 3
# Cells of the map: half a power of ten wide.
PER_DECADE = 2
LOWEST = -8


def cell(value: float) -> int:
    """Return the cell of a margin or a shift; what is smaller shares the lowest."""
    if value <= 0:
        return LOWEST * PER_DECADE
    return max(math.floor(math.log10(value) * PER_DECADE), LOWEST * PER_DECADE)


def map_state(change: str) -> dict[str, object]:
    """Place every step of the texts by its margin and by how far it is shifted."""
    found = disturbances(change, prompts(TEXTS))
    margins, shifts, changed = (
        np.concatenate([getattr(x, name) for x in found])
        for name in ("margins", "shifts", "changed")
    )
    places = [(cell(m), cell(s)) for m, s in zip(margins, shifts, strict=True)]
    moved = Counter(p for p, turned in zip(places, changed, strict=True) if turned)
    return {
        "change": change,
        "texts": TEXTS,
        "steps": len(margins),
        "cells": [
            [*p, count, moved[p]] for p, count in sorted(Counter(places).items())
        ],
        "smallest": f"{margins.min():.1e}",
        "largest": f"{shifts.max():.1e}",
        "within": int((shifts >= margins).sum()),
        "changed": int(changed.sum()),
        "parted": sum(bool(x.changed.any()) for x in found),
    }


def map_words(state: Mapping[str, object]) -> str:
    """Say how near the margins come, how far the change reaches, and what it turns."""
    return (
        f"Changed: {state['change']}. {state['steps']:,} steps of {state['texts']} "
        f"texts. The smallest margin is {state['smallest']}, the largest shift of a "
        f"rival {state['largest']}. Steps within reach of their shift: "
        f"{state['within']}. Words that change: {state['changed']}. Texts that part: "
        f"{state['parted']} of {state['texts']}."
    )


def map_check(state: Mapping[str, object], change: str) -> None:
    """Sort every row of logits, and compare words and margins the long way."""
    changed = steps = parted = 0
    smallest = math.inf
    for text in prompts(TEXTS):
        before, after = (logits(text, way) for way in CHANGES[change])
        ranks = np.sort(before, axis=1)
        smallest = min(smallest, float((ranks[:, -1] - ranks[:, -2]).min()))
        turned = [
            int(np.flatnonzero(a == a.max())[0]) != int(np.flatnonzero(b == b.max())[0])
            for a, b in zip(before, after, strict=True)
        ]
        changed, parted = changed + sum(turned), parted + any(turned)
        steps += len(turned)
    assert (state["changed"], state["parted"]) == (changed, parted)
    assert sum(count for *_, count, _ in state["cells"]) == steps == state["steps"]
    assert state["smallest"] == f"{smallest:.1e}"
    assert state["changed"] <= state["within"]
    for margin, shift, _, turned in state["cells"]:
        assert not turned or shift >= margin


def margin_figure() -> MovingFigure:
    """Return the figure: margin against perturbation, one frame per change."""
    return MovingFigure(
        name="ch13-margins",
        page="notebooks/13_the_coin_flip",
        caption=(
            "Every step of three greedy texts. To the right: how far the best word "
            "leads. Upwards: how far a change of the arithmetic moves some rival "
            "against it; on the lower edge lie steps at which no rival moved. Larger "
            "squares hold more steps. Only above the diagonal can a word change, and "
            "rings count those that do. Changes of float32 arithmetic stay far below; "
            "rounded activations reach up."
        ),
        axes={"What changes": tuple(CHANGES)},
        state=map_state,
        picture=margin_map,
        words=map_words,
        check=map_check,
        start=(1,),
    )


FIGURES = (margin_figure,)
