"""Two cores in time: what each engine does and when they talk (chapter 22)."""

from collections.abc import Mapping

import numpy as np

from flashlib.experiments.two_cores import KEYS, decode_inputs, decode_on
from flashlib.machine.timeline import Timeline
from flashlib.plots.ch22 import timeline_picture
from flashlib.widgets.figure import MovingFigure

KINDS = {
    "k_load": "load",
    "v_load": "load",
    "mm1": "products",
    "sum": "products",
    "mm2": "products",
}
#: Events of one kind on one engine closer than this are drawn as one, ns.
GAP = 150.0


def _spans(line: Timeline) -> list[list]:
    """Join neighboring events of a kind: ``[engine, kind, start, end]`` in ns."""
    out: list[list] = []
    last: dict[str, list] = {}
    for event in line.events:
        kind = KINDS.get(event.step, "softmax and the rest")
        lane = event.engine
        if event.op == "sendrecv":
            kind = lane = "messages"
        start, end = round(event.start), round(event.end)
        before = last.get(lane)
        if before and before[1] == kind and start - before[3] < GAP:
            before[3] = max(before[3], end)
        else:
            last[lane] = [lane, kind, start, end]
            out.append(last[lane])
    return out


def timeline_state(cores: int, keys: int) -> dict[str, object]:
    """Return what every engine of every core does, in ns."""
    _, lines = decode_on(cores, keys)
    alone = decode_on(1, keys)[1][0].total
    meetings = [e for e in lines[0].events if e.op == "sendrecv"]
    return {
        "cores": cores,
        "keys": keys,
        "ends": [round(line.total) for line in lines],
        "meetings": [round(e.start) for e in meetings],
        "one_core": round(alone),
        "longest": round(alone if cores == 1 else lines[0].total),
        "spans": [_spans(line) for line in lines],
    }


def timeline_words(state: Mapping[str, object]) -> str:
    """Say when the cores end, when they meet, and what one core takes."""
    ends = [f"{t / 1000:.1f}" for t in state["ends"]]
    if state["cores"] == 1:
        return (
            f"One core, {state['keys']:,} keys: the step ends after {ends[0]} µs, and "
            "nobody has to be asked."
        )
    met = ", ".join(f"{t / 1000:.1f}" for t in state["meetings"])
    change = state["ends"][0] / state["one_core"] - 1
    word = "more" if change > 0 else "less"
    return (
        f"Two cores, {state['keys']:,} keys, half each: they meet at {met} µs, for the "
        f"maximum, the sum and the output. Core 0 stores and ends after {ends[0]} µs, "
        f"core 1 after {ends[1]} µs. One core alone takes "
        f"{state['one_core'] / 1000:.1f} µs, so two take {abs(change):.0%} {word}."
    )


def timeline_check(state: Mapping[str, object], cores: int, keys: int) -> None:
    """Hold the output against float64, and the spans against the traces."""
    result, _ = decode_on(cores, keys)
    q, k, v = (x.astype(np.float64) for x in decode_inputs(keys))
    s = np.einsum("bhsd,bld->bhl", q, k)
    p = np.exp(s - s.max(axis=-1, keepdims=True))
    want = np.einsum("bhl,bld->bhd", p / p.sum(axis=-1, keepdims=True), v)
    assert np.abs(result.out[..., 0].astype(np.float64) - want).max() < 4e-3
    sent = [t.histogram().get("sendrecv", 0) for t in result.traces]
    assert sent == [0] if cores == 1 else sent == [3, 3]
    for spans, trace, end in zip(
        state["spans"], result.traces, state["ends"], strict=True
    ):
        engines = {r.engine for r in trace if r.op != "sendrecv"}
        assert {lane for lane, *_ in spans} - {"messages"} == engines
        assert max(stop for *_, stop in spans) == end


def timeline_figure() -> MovingFigure:
    """Return the figure: one core and two, from 512 keys to 8,192."""
    return MovingFigure(
        name="ch22-cores",
        page="notebooks/22_eight_thousand_keys_and_two_cores",
        caption=(
            "One decode step of eight heads in time, one line per engine: transfers "
            "of keys and values, products, the softmax and the rest, and messages "
            "between the cores, which stand on a line of their own. Where a core has "
            "a gap, it waits."
        ),
        axes={"Cores": (1, 2), "Keys": KEYS},
        state=timeline_state,
        picture=timeline_picture,
        words=timeline_words,
        check=timeline_check,
        start=(1, 0),
    )


FIGURES = (timeline_figure,)
