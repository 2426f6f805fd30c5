"""Print a table, and write it down with the machine it was measured on (book)."""

import json
import os
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from flashlib.cores import usable_cores
from flashlib.measure.host import caches, memory_bytes, processor, versions
from flashlib.measure.timing import Timing

__all__ = [
    "FOLDER",
    "Row",
    "cores_text",
    "machine_card",
    "print_table",
    "read",
    "rows_of",
    "write",
]

FOLDER = Path(__file__).parents[2] / "book" / "measurements"


class Row(NamedTuple):
    """One line of a measurement.

    Attributes
    ----------
    what : str
        What was computed, such as ``"16/8/128 causal"``: query heads, KV heads, width
        and mask. Empty where all rows of a table have that in common.
    seq : int or None
        How many keys there were; None where no length belongs to the row.
    cores : int or None
        How many cores were used; None where that was not limited.
    name : str
        Who computed it.
    milliseconds, low, high : float
        Median, fastest and slowest round.
    rate : float
        In the unit of the table.
    ratio : float or None
        How many times as fast as the peer, None without one.
    """

    what: str
    seq: int | None
    cores: int | None
    name: str
    milliseconds: float
    low: float
    high: float
    rate: float
    ratio: float | None


def rows_of(
    times: Mapping[str, Timing],
    work: float | Mapping[str, float],
    peer: str | None = None,
    *,
    what: str = "",
    seq: int | None = None,
    cores: int | None = None,
) -> list[Row]:
    """Return a row for every function that was timed.

    Parameters
    ----------
    times : mapping of str to Timing
        By who computed it.
    work : float or mapping of str to float
        What one call does, in operations or bytes; rates are in 1e9 per second. A
        mapping where not all do the same.
    peer : str, optional
        Whom the ratios compare with; it may be missing from `times`.
    what, seq, cores
        As in :class:`Row`.
    """
    base = times[peer].median if peer in times else None
    works = work if isinstance(work, Mapping) else dict.fromkeys(times, work)
    return [
        Row(
            what,
            seq,
            cores,
            name,
            *(1e3 * x for x in time[:3]),
            works[name] / time.median / 1e9,
            None if base is None else base / time.median,
        )
        for name, time in times.items()
    ]


def cores_text(cores: int) -> str:
    """Return ``"1 core"``, ``"2 cores"`` and so on."""
    return f"{cores} core" + "s" * (cores > 1)


def _case(row: Row) -> str:
    """Return what a row was measured on, in words: ``"causal, seq 511, 1 core"``."""
    length = "" if row.seq is None else f"seq {row.seq}"
    count = "" if row.cores is None else cores_text(row.cores)
    return ", ".join(filter(None, (row.what, length, count)))


def machine_card() -> dict[str, object]:
    """Return what a figure needs to be more than a number."""
    loads = os.getloadavg() if hasattr(os, "getloadavg") else ()
    return {
        "processor": processor(),
        "cores": usable_cores(),
        "memory_bytes": memory_bytes(),
        "caches": [cache._asdict() for cache in caches()],
        "versions": versions(
            "numpy", "numba", "llvmlite", "torch", "onnxruntime", "jax"
        ),
        "load_average": [round(load, 2) for load in loads],
        "date": datetime.now(UTC).date().isoformat(),
    }


def print_table(
    rows: list[Row],
    unit: str,
    peer: str,
    peaks: Mapping | None = None,
    unlimited: Collection[str] = (),
) -> None:
    """Print rows as aligned columns; what several have in common heads them, once.

    Rows of several names stand below what they were measured on. If all rows have the
    same name, each says itself what it was measured on, and there is no name.

    Parameters
    ----------
    rows : list of Row
    unit, peer : str
        Of the rates, and whom the ratios compare with.
    peaks : mapping, optional
        The highest possible rate by the number of cores; its keys may be strings, as
        they are in a file.
    unlimited : collection of str
        Who used all cores whatever the row says: without a share of the peak of fewer.
    """
    labels, heads = _labels(rows)
    lines = [("", "ms", "low", "high", unit, f"x {peer}")]
    lines += [(label, *_numbers(row)) for label, row in zip(labels, rows, strict=True)]
    if peaks is not None:
        tops = {int(cores): peak for cores, peak in peaks.items()}
        fewer = {cores for cores in tops if cores < max(tops)}
        shares = [
            ""
            if row.name in unlimited and row.cores in fewer
            else f"{row.rate / tops[row.cores]:.0%}"
            for row in rows
        ]
        columns = ["of peak", *shares]
        lines = [(*line, share) for line, share in zip(lines, columns, strict=True)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    above = ""
    for head, line in zip(["", *heads], lines, strict=True):
        if head != above:
            print(head)
        above = head
        label, *numbers = line
        cells = [label.ljust(widths[0]), *map(str.rjust, numbers, widths[1:])]
        print("  ".join(cells).rstrip())


def _labels(rows: list[Row]) -> tuple[list[str], list[str]]:
    """Return what stands before each row, and the line above it."""
    if len({row.name for row in rows}) > 1:
        return [row.name for row in rows], [_case(row) for row in rows]
    if len(rows) > 1 and len({row.what for row in rows}) == 1:
        return [_case(row._replace(what="")) for row in rows], [r.what for r in rows]
    return [_case(row) for row in rows], [""] * len(rows)


def _numbers(row: Row) -> tuple[str, ...]:
    """Write the numbers of a row."""
    times = map(_three_digits, (row.milliseconds, row.low, row.high))
    ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
    return (*times, f"{row.rate:.3g}", ratio)


def _three_digits(value: float) -> str:
    """Write a positive number with three digits, or with all that it has before 1."""
    return f"{value:,.0f}" if value >= 999.5 else f"{value:.3g}"


def write(claim: str, rows: list[Row], folder: Path = FOLDER, **facts: object) -> Path:
    """Write ``<claim>.json``: machine, facts and rows.

    Returns
    -------
    Path
        The file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / f"{claim}.json"
    content = {
        "claim": claim,
        "machine": machine_card(),
        **facts,
        "rows": [row._asdict() for row in rows],
    }
    place.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return place


def read(claim: str, folder: Path = FOLDER) -> dict[str, Any]:
    """Return what ``<claim>.json`` holds, its rows as :class:`Row`.

    Raises
    ------
    FileNotFoundError
        If the claim has not been measured; the message names the command.
    """
    place = folder / f"{claim}.json"
    if not place.exists():
        raise FileNotFoundError(
            f"claim has {claim!r}; expected a measurement in {place.parent}; "
            f"python -m flashlib.measure.{claim} takes it"
        )
    content = json.loads(place.read_text(encoding="utf-8"))
    content["rows"] = [Row(**row) for row in content["rows"]]
    return content
