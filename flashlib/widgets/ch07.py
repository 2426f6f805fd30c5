"""Lanes and stripes: what waits for what, and who writes where (chapter 7)."""

from collections.abc import Callable, Mapping

import numpy as np

from flashlib.experiments.races import (
    HEAD_DIM,
    N_HEADS,
    N_KV_HEADS,
    TOKENS,
    find_races,
    right_output,
    run_heads,
)
from flashlib.plots.ch07 import lanes_picture, stripes_picture
from flashlib.testing import pseudo_random
from flashlib.widgets.figure import MovingFigure

PAGE = "notebooks/07_heads_groups_and_cores"
LANES, LATENCIES, PRODUCTS = (1, 2, 4, 8), (2, 4, 6), 16


def products() -> np.ndarray:
    """Return the sixteen float32 products that the figure adds up."""
    return pseudo_random(11, PRODUCTS) * pseudo_random(23, PRODUCTS)


def schedule(lanes: int, latency: int) -> list[tuple[int, int, str]]:
    """Start one addition per cycle, each when its lane is ready: (lane, start, what).

    The sums of the lanes are then added in pairs.
    """
    ready, clock, done = [0] * lanes, 0, []

    def start(lane: int, when: int, what: str) -> int:
        done.append((lane, when, what))
        ready[lane] = when + latency
        return when + 1

    for i in range(PRODUCTS):
        lane = i % lanes
        clock = start(lane, max(clock, ready[lane]), str(i))
    half = lanes // 2
    while half:
        for lane in range(half):
            both = max(ready[lane], ready[lane + half])
            clock = start(lane, max(clock, both), "+")
        half //= 2
    return done


def lanes_state(latency: int, lanes: int) -> dict[str, object]:
    """Schedule a sum of sixteen products, and add them up in that order."""
    x = products()
    sums = np.zeros(lanes, np.float32)
    additions = schedule(lanes, latency)
    for lane, _, what in additions:
        if what != "+":
            sums[lane] += x[int(what)]
    while len(sums) > 1:
        sums = sums[: len(sums) // 2] + sums[len(sums) // 2 :]
    exact = x.astype(np.float64).sum()
    cycles = max(when for _, when, _ in additions) + latency
    return {
        "lanes": lanes,
        "latency": latency,
        "additions": [list(one) for one in additions],
        "cycles": cycles,
        "busy": round(len(additions) / cycles, 3),
        "sum": f"{float(sums[0]):.9f}",
        "steps": round(
            float((sums[0] - exact) / np.spacing(np.float32(abs(exact)))), 2
        ),
    }


def lanes_words(state: Mapping[str, object]) -> str:
    """Say how long the sum takes, and what comes out."""
    lanes = "1 accumulator" if state["lanes"] == 1 else f"{state['lanes']} accumulators"
    return (
        f"{lanes}, each ready after {state['latency']} cycles: "
        f"{len(state['additions'])} additions take {state['cycles']} cycles, and the "
        f"adder starts one in {state['busy']:.0%} of them. The sum is {state['sum']}, "
        f"{state['steps']:+.2f} float32 steps from the exact one."
    )


def lanes_check(state: Mapping[str, object], latency: int, lanes: int) -> None:
    """Play the cycles one at a time, and add the columns of a table."""
    last, clock, waiting = {}, 0, list(range(PRODUCTS))
    while waiting:
        lane = waiting[0] % lanes
        if last.get(lane, -latency) + latency <= clock:
            last[lane] = clock
            waiting.pop(0)
        clock += 1
    starts = {what: when for _, when, what in state["additions"] if what != "+"}
    assert starts[str(PRODUCTS - 1)] == clock - 1
    table = products().reshape(-1, lanes)
    sums = np.add.accumulate(table, axis=0)[-1]
    for half in (4, 2, 1):
        if half < len(sums):
            sums = sums[:half] + sums[half:]
    assert f"{float(sums[0]):.9f}" == state["sum"]
    assert abs(state["steps"]) < 4


def lanes_figure() -> MovingFigure:
    """Return the figure: a chain of additions, cut into lanes."""
    return MovingFigure(
        name="ch07-lanes",
        page=PAGE,
        caption=(
            "Sixteen products are added up by an adder that can start one addition "
            "per cycle. Each bar is an addition, as long as it takes until its sum "
            "can be used; a lane is one accumulator. Add lanes until the gaps are "
            "gone, then make the latency longer. The sums of the lanes are added at "
            "the end, in green."
        ),
        axes={"Cycles per addition": LATENCIES, "Accumulators": LANES},
        state=lanes_state,
        picture=lanes_picture,
        words=lanes_words,
        check=lanes_check,
        start=(1, 0),
    )


def _own(head: int) -> tuple[int, int]:
    return head * HEAD_DIM, (head + 1) * HEAD_DIM


def _wide(head: int) -> tuple[int, int]:
    return head * HEAD_DIM, min((head + 1) * HEAD_DIM + 1, N_HEADS * HEAD_DIM)


def _kv(head: int) -> tuple[int, int]:
    return _own(head // (N_HEADS // N_KV_HEADS))


RULES: dict[str, Callable[[int], tuple[int, int]]] = {
    "its own stripe": _own,
    "one column more": _wide,
    "stripe h // group": _kv,
}
ORDERS = {"0, 1, 2, 3": (0, 1, 2, 3), "3, 2, 1, 0": (3, 2, 1, 0)}


def stripes_state(rule: str, order: str) -> dict[str, object]:
    """Run four heads in some order, and note who wrote which number."""
    out, logs = run_heads(RULES[rule], ORDERS[order])
    width = N_HEADS * HEAD_DIM
    writers = [[[] for _ in range(width)] for _ in range(TOKENS)]
    for head in range(N_HEADS):
        for _, place in logs[head][1]:
            writers[place // width][place % width].append(head)
    right = right_output()
    return {
        "rule": rule,
        "order": order,
        "writers": writers,
        "right": (out == right).tolist(),
        "columns": [list(RULES[rule](head)) for head in range(N_HEADS)],
        "races": [list(p) for p in find_races([logs[h] for h in range(N_HEADS)])],
        "wrong": int((out != right).sum()),
        "kv_heads": [head // (N_HEADS // N_KV_HEADS) for head in range(N_HEADS)],
    }


def stripes_words(state: Mapping[str, object]) -> str:
    """Say who writes what, who collides, and whether the output shows it."""
    columns = "; ".join(
        f"head {head} writes columns {first} to {stop - 1}"
        for head, (first, stop) in enumerate(state["columns"])
    )
    races = ", ".join(f"{a} with {b}" for a, b in state["races"])
    return (
        f"Each head writes {state['rule']}: {columns}. Races: {races or 'none'}. Run "
        f"in the order {state['order']}, {state['wrong']} of {TOKENS * 8} numbers of "
        "the output are wrong."
    )


def stripes_check(state: Mapping[str, object], rule: str, order: str) -> None:
    """Write random heads without a watch, in the same order, and compare columns."""
    spans = [set(range(*columns)) for columns in state["columns"]]
    races = [[a, b] for a in range(4) for b in range(a + 1, 4) if spans[a] & spans[b]]
    assert races == state["races"]
    last = {}
    for head in ORDERS[order]:
        last |= dict.fromkeys(spans[head], head)
    wrong = [c for c in range(8) if last.get(c) != c // HEAD_DIM]
    assert state["wrong"] == TOKENS * len(wrong)
    for row in state["right"]:
        assert [c for c in range(8) if not row[c]] == wrong


def stripes_figure() -> MovingFigure:
    """Return the figure: which head writes which number of the output."""
    return MovingFigure(
        name="ch07-stripes",
        page=PAGE,
        caption=(
            "The output of 3 tokens and 4 heads of width 2. Each number shows the "
            "heads that wrote it; more than one is a race, whether or not it did "
            "harm. A crossed number came out wrong in this order. One column too many "
            "is invisible in the order 0, 1, 2, 3, because the next head repairs it."
        ),
        axes={"Each head writes": tuple(RULES), "Heads run in order": tuple(ORDERS)},
        state=stripes_state,
        picture=stripes_picture,
        words=stripes_words,
        check=stripes_check,
        start=(1, 0),
    )


FIGURES = (lanes_figure, stripes_figure)
