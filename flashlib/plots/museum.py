"""Draw which check catches which mutant (book)."""

import html
from collections.abc import Collection, Mapping, Sequence
from itertools import groupby

from flashlib.plots.svg import BLUE, FAINT, GRAY, INK, ORANGE, line, picture, rect, text

LEFT, TOP = 186, 92
ROW, CELL, GAP = 15, 5.5, 7


def kill_map(
    killed: Mapping[str, Sequence[str]],
    topics: Mapping[str, str],
    chapters: Mapping[str, int],
    alone: str | None = None,
    held_to: Mapping[str, Collection[str]] | None = None,
    cell: float = CELL,
) -> str:
    """Return a map with a row for each mutant and a column for each check, as SVG.

    Parameters
    ----------
    killed : mapping of str to sequence of str
        The checks that catch a mutant, by its name.
    topics : mapping of str to str
        The topic of every check, in the order of the columns.
    chapters : mapping of str to int
        The chapter of every mutant, in the order of the rows.
    alone : str, optional
        The check that gets a column of its own in front, with the survivors named.
    held_to : mapping of str to collection of str, optional
        The checks that were run over a mutant, by its name; all of them unless given.
    cell : float
        Width of a column in CSS pixels.
    """
    columns = _columns(topics, alone, cell)
    rows = _rows(chapters)
    width = max(columns.values()) + cell + 4
    height = max(rows.values()) + ROW + 4
    body = [*_heads(columns, topics, alone, height, cell), *_names(rows, chapters)]
    for mutant, y in rows.items():
        left, right = LEFT, width
        if held_to is not None:
            xs = [columns[check] for check in held_to[mutant]]
            left, right = min(xs), max(xs) + cell
        body.append(line(left, y + ROW - 1, right, y + ROW - 1, FAINT, 0.5))
        for check in killed[mutant]:
            own = 2 * cell if check == alone else cell - 0.5
            color = ORANGE if check == alone else BLUE
            body.append(
                _cell(columns[check], y, own, color, f"{check} catches {mutant}")
            )
        if alone is not None and alone not in killed[mutant]:
            body.append(text(columns[alone] + cell, y + 12, "–", size=12, fill=GRAY))
    state = {name: len(checks) for name, checks in killed.items()}
    return picture(width, height, body, kill_words(killed, topics, alone), state)


def scrolling(svg: str, label: str) -> str:
    """Let a wide drawing scroll sideways on a narrow page instead of shrinking."""
    return (
        f'<div class="fl-scroll" style="overflow-x: auto" tabindex="0" role="region" '
        f'aria-label="{html.escape(label)}">'
        f'<div style="min-width: 640px">{svg}</div></div>'
    )


def kill_words(
    killed: Mapping[str, Sequence[str]],
    topics: Mapping[str, str],
    alone: str | None = None,
) -> str:
    """Say in a sentence what the map shows."""
    missed = [name for name, checks in killed.items() if not checks]
    single = [name for name, checks in killed.items() if len(checks) == 1]
    words = (
        f"A map of {len(killed)} mutants and {len(topics)} checks. Mutants that no "
        f"check catches: {len(missed)}. Mutants that one check alone catches: "
        f"{len(single)}."
    )
    if alone is None:
        return words
    survivors = [name for name, checks in killed.items() if alone not in checks]
    return (
        f"{words} Mutants that the check named {alone} misses, {len(survivors)} in "
        f"all: {', '.join(survivors)}."
    )


def _columns(
    topics: Mapping[str, str], alone: str | None, cell: float
) -> dict[str, float]:
    """Place the columns: one in front, then the topics with a gap between them."""
    x, columns = LEFT + 6.0, {}
    if alone is not None:
        columns[alone] = x
        x += 2 * cell + GAP
    rest = [check for check in topics if check != alone]
    for _, checks in groupby(rest, topics.__getitem__):
        for check in checks:
            columns[check] = x
            x += cell
        x += GAP
    return columns


def _rows(chapters: Mapping[str, int]) -> dict[str, float]:
    """Place the rows: the chapters with a gap between them."""
    rows, y = {}, float(TOP)
    for _, mutants in groupby(chapters, chapters.__getitem__):
        for mutant in mutants:
            rows[mutant] = y
            y += ROW
        y += GAP
    return rows


def _heads(columns, topics, alone, height, cell) -> list[str]:
    """Write the topics over their columns, upright."""
    heads = []
    if alone is not None:
        heads.append(_upright(columns[alone] + cell + 4, alone, "bold"))
    rest = [check for check in columns if check != alone]
    for topic, checks in groupby(rest, topics.__getitem__):
        xs = [columns[check] for check in checks]
        middle = (xs[0] + xs[-1] + cell) / 2
        heads.append(_upright(middle + 4, topic))
        heads.append(line(xs[0], TOP - 4, xs[-1] + cell, TOP - 4, GRAY))
        heads.append(line(xs[0], height - 2, xs[-1] + cell, height - 2, GRAY))
    return heads


def _names(rows: Mapping[str, float], chapters: Mapping[str, int]) -> list[str]:
    """Write the mutants beside their rows, and each chapter beside its first."""
    names, last = [], None
    for mutant, y in rows.items():
        names.append(text(LEFT, y + 11, mutant, "end", 12))
        if chapters[mutant] != last:
            last = chapters[mutant]
            names.append(text(0, y + 11, f"ch. {last}", "start", 12, GRAY))
    return names


def _cell(x: float, y: float, width: float, color: str, pair: str) -> str:
    """Fill one cell; pointing at it names the pair."""
    box = rect(x, y + 1, width, ROW - 3, color)
    return f"<g><title>{html.escape(pair)}</title>{box}</g>"


def _upright(x: float, words: str, weight: str = "normal") -> str:
    """Write text from bottom to top."""
    label = text(0, 0, words, "start", 12, INK, weight)
    return f'<g transform="translate({x:.1f} {TOP - 9}) rotate(-90)">{label}</g>'
