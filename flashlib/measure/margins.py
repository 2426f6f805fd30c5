"""Measure margins over many texts: ``python -m flashlib.measure.margins`` (chapter 13).

Nothing here is a time. The record says how near to a tie a small model comes, and how
far several changes of the arithmetic move it.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from flashlib.experiments.disturb import (
    CHANGES,
    PROMPT,
    disturbances,
    logits,
    prompts,
    story_model,
    told,
)
from flashlib.measure.record import FOLDER, read, write

__all__ = ["main", "merged", "parting", "summary"]


def summary(change: str, texts: list[str]) -> dict[str, object]:
    """Return what one change does to all texts, in a few numbers."""
    found = disturbances(change, texts)
    margins, shifts, changed = (
        np.concatenate([getattr(x, name) for x in found])
        for name in ("margins", "shifts", "changed")
    )
    return {
        "change": change,
        "steps": len(margins),
        "smallest_margin": float(margins.min()),
        "median_shift": float(np.median(shifts)),
        "largest_shift": float(shifts.max()),
        "steps_within_reach": int((shifts >= margins).sum()),
        "steps_changed": int(changed.sum()),
        "texts_parted": sum(bool(x.changed.any()) for x in found),
        "first": parting(change, texts),
    }


def parting(change: str, texts: list[str]) -> dict[str, object] | None:
    """Return the first word that a change replaces, with its probabilities.

    Parameters
    ----------
    change : str
        One of `flashlib.experiments.disturb.CHANGES`.
    texts : list of str
        Openings.

    Returns
    -------
    dict or None
        Prompt, words so far, both words, and the probability of each before and
        after; None if no text parts.
    """
    words = story_model().tokenizer
    for text, found in zip(texts, disturbances(change, texts), strict=True):
        if found.changed.any():
            step = int(found.changed.argmax())
            rows = [logits(text, way)[step] for way in CHANGES[change]]
            one, other = (int(row.argmax()) for row in rows)
            chances = [np.exp(row - row.max()) for row in rows]
            chances = [p / p.sum() for p in chances]
            return {
                "prompt": text,
                "step": step,
                "so_far": words.decode(told(text)[PROMPT : PROMPT + step]),
                "before": words.words[one],
                "after": words.words[other],
                "before_chances": [float(p[one]) for p in chances],
                "after_chances": [float(p[other]) for p in chances],
                "margin": float(found.margins[step]),
                "shift": float(found.shifts[step]),
            }
    return None


def merged(rows: list[dict[str, object]]) -> dict[str, object]:
    """Return one summary of the summaries of one change, each of other texts."""
    added = ("steps", "steps_within_reach", "steps_changed", "texts_parted")
    return {
        "change": rows[0]["change"],
        **{name: sum(row[name] for row in rows) for name in added},
        "smallest_margin": min(row["smallest_margin"] for row in rows),
        "largest_shift": max(row["largest_shift"] for row in rows),
        "first": next((row["first"] for row in rows if row["first"]), None),
    }


def main(arguments: Sequence[str] | None = None, folder: Path = FOLDER) -> None:
    """Compute more texts in every way, and record what moved in all so far."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--more", type=int, default=20, help="texts to add")
    options = parser.parse_args(arguments)
    known = (folder / "margins.json").exists()
    before = read("margins", folder) if known else {"texts": 0, "changes": []}
    rows = {row["change"]: row for row in before["changes"]}
    first, last = before["texts"], before["texts"] + options.more
    for count, text in enumerate(prompts(last)[first:], first + 1):
        for change in CHANGES:
            parts = [rows[change]] if change in rows else []
            rows[change] = merged([*parts, summary(change, [text])])
        logits.cache_clear()
        # After every text, so that nothing is lost if the next one is not awaited.
        write("margins", [], folder, texts=count, changes=list(rows.values()))
    for row in rows.values():
        print(
            f"{row['change']:27} largest shift {row['largest_shift']:.1e}, "
            f"{row['texts_parted']} of {last} texts part"
        )


if __name__ == "__main__":
    main()
