"""Write a timeline in the Chrome trace format, which Perfetto opens (chapter 15).

One process per core, one row per engine. DMA transfers overlap, so they are laid
out on as many rows as there are transfers under way at once. Times are
microseconds, as the format wants.
"""

import json
from collections.abc import Sequence
from pathlib import Path

from flashlib.machine.timeline import ENGINES, Event, Timeline

__all__ = ["chrome_trace", "save_chrome_trace"]


def chrome_trace(timelines: Timeline | Sequence[Timeline]) -> dict[str, object]:
    """Return the JSON object of one or two cores.

    Examples
    --------
    >>> from flashlib.machine import Machine, timeline
    >>> m = Machine()
    >>> _ = m.isa.memset(m.sbuf.alloc((128, 96)), 0.0)
    >>> [e] = [e for e in chrome_trace(timeline(m.trace))["traceEvents"]
    ...        if e["ph"] == "X"]
    >>> e["name"], e["dur"]
    ('memset', 0.1)
    """
    if isinstance(timelines, Timeline):
        timelines = (timelines,)
    events: list[dict] = []
    for line in timelines:
        events.append(_name("process_name", line.core, 0, f"core {line.core}"))
        rows = _rows(line)
        names = dict(rows.values())
        for row, name in sorted(names.items()):
            events.append(_name("thread_name", line.core, row, name))
        for index, event in enumerate(line.events):
            events.append(_slice(event, line.core, rows[index][0]))
    return {"traceEvents": events, "displayTimeUnit": "ns"}


def save_chrome_trace(
    path: str | Path, timelines: Timeline | Sequence[Timeline]
) -> Path:
    """Write the JSON file; open it at ui.perfetto.dev or chrome://tracing."""
    path = Path(path)
    path.write_text(json.dumps(chrome_trace(timelines)), encoding="utf-8")
    return path


def _rows(line: Timeline) -> dict[int, tuple[int, str]]:
    """Give every event a row; overlapping transfers get rows of their own."""
    out: dict[int, tuple[int, str]] = {}
    free_at: list[float] = []
    for index in sorted(range(len(line.events)), key=lambda i: line.events[i].start):
        event = line.events[index]
        if event.engine != "dma":
            out[index] = (ENGINES.index(event.engine), event.engine)
            continue
        lane = next((i for i, t in enumerate(free_at) if t <= event.start), None)
        if lane is None:
            lane = len(free_at)
            free_at.append(0.0)
        free_at[lane] = event.end
        out[index] = (ENGINES.index("dma") + lane, f"dma {lane}")
    return out


def _slice(event: Event, core: int, row: int) -> dict[str, object]:
    record = event.record
    return {
        "name": event.op,
        "cat": event.step or event.engine,
        "ph": "X",
        "ts": round(event.start / 1000, 6),
        "dur": round((event.end - event.start) / 1000, 6),
        "pid": core,
        "tid": row,
        "args": {
            "step": event.step,
            "cycles": event.cycles,
            "bytes": record.nbytes,
            "run bytes": record.run_bytes,
            "from": record.src or "",
            "to": record.dst or "",
            "source": record.code,
        },
    }


def _name(kind: str, core: int, row: int, name: str) -> dict[str, object]:
    return {
        "name": kind,
        "ph": "M",
        "pid": core,
        "tid": row,
        "ts": 0,
        "args": {"name": name},
    }
