"""A ring of slots with a window on it (chapter 19)."""

from collections.abc import Mapping

import numpy as np

from flashlib.experiments.ring_bands import ring_bands
from flashlib.plots.ch19 import ring_picture
from flashlib.widgets.figure import MovingFigure

SLOTS = 10
WINDOWS = (1, 3, 6, 10, 11)


def ring_state(pos: int, window: int) -> dict[str, object]:
    """Return both comparisons and the band for a query at ``pos`` on its second lap."""
    start, slot = (pos - window + 1) % SLOTS, np.arange(SLOTS)
    kept = ring_bands(SLOTS, np.array([[start, pos]]))[0].astype(int)
    return {
        "pos": pos,
        "window": window,
        "start": int(start),
        "wraps": bool(start > pos),
        "ge": (slot >= start).astype(int).tolist(),
        "lt": (slot < pos).astype(int).tolist(),
        "kept": kept.tolist(),
        "cached": int(kept.sum()),
        "wanted": window - 1,
    }


def ring_words(state: Mapping[str, object]) -> str:
    """Say the band, the slots in it and whether they are those of the window."""
    slots = [str(i) for i, bit in enumerate(state["kept"]) if bit]
    how = "wraps: or" if state["wraps"] else "does not wrap: and"
    short = state["cached"] != state["wanted"]
    wanted = f"; the window wants {state['wanted']}, and the band is empty" * short
    return (
        f"Query at slot {state['pos']}, window {state['window']}: the band from "
        f"{state['start']} up to {state['pos']} {how}; it keeps "
        f"{state['cached']} cached slots ({', '.join(slots) or 'none'}), with the "
        f"query itself {state['cached'] + 1}{wanted}."
    )


def ring_check(state: Mapping[str, object], pos: int, window: int) -> None:
    """Count backwards from the query, token by token."""
    kept = {(pos - back) % SLOTS for back in range(1, window)}
    if window == SLOTS + 1:
        assert len(kept) == SLOTS and state["start"] == pos
        kept = set()
    assert kept == {i for i, bit in enumerate(state["kept"]) if bit}


def ring_figure() -> MovingFigure:
    """Return the figure: turn the query around the ring, choose the window."""
    return MovingFigure(
        name="ch19-ring",
        page="notebooks/19_windows_that_wrap",
        caption=(
            "A ring of ten slots, all written at least once. The query is about to "
            "be stored at the slot with a second rim; filled slots are in its window. "
            "On the right the two comparisons and what is made of them. A window of "
            "11, the whole ring and the query, comes out empty."
        ),
        axes={"Slot of the query": tuple(range(SLOTS)), "Window": WINDOWS},
        state=ring_state,
        picture=ring_picture,
        words=ring_words,
        check=ring_check,
        start=(3, 2),
    )


FIGURES = (ring_figure,)
