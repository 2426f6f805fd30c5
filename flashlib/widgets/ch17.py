"""The array while it sums: who stands still, who moves (chapter 17)."""

from collections.abc import Mapping

import numpy as np

from flashlib.experiments.denominators import (
    BLOCKS,
    WIDTH,
    exponentials,
    sum_on_machine,
)
from flashlib.machine import timeline
from flashlib.plots.ch17 import array_picture
from flashlib.programs import blocks
from flashlib.widgets.figure import MovingFigure

WAYS = dict(zip(("moving", "stationary", "beside V"), blocks.SUM_VARIANTS, strict=True))
COLUMNS = (1, 4, 8, 16, 32, 64, 128)


def array_state(ones: str, columns: int) -> dict[str, object]:
    """Return the operands of one product, its cycles, and where the sums land."""
    way = WAYS[ones]
    sums, m = sum_on_machine(way, columns)
    products = [e for e in timeline(m.trace).events if e.op == "nc_matmul"]
    still, moving = products[0].record.reads
    dst = products[0].record.writes[0]
    kept = way == blocks.SUM_VARIANTS[2]
    plain = max(min(64, WIDTH), columns) if kept else 0
    return {
        "way": way,
        "columns": columns,
        "still": list(still.shape),
        "moving": list(moving.shape),
        "result": list(dst.shape),
        "lit": [WIDTH, WIDTH + 1] if kept else None,
        "cycles": int(products[0].cycles),
        "added": int(sum(e.cycles - plain for e in products)),
        "products": 0 if kept else len(products),
        "sums": [round(float(x), 2) for x in sums[:3]],
        "lands": {
            "ones moving": "one sum per partition",
            "ones stationary": "all sums on all partitions",
            "ones beside values": f"all sums on partition {WIDTH}",
        }[way],
    }


def array_words(state: Mapping[str, object]) -> str:
    """Say who stands still, what a product costs, and where the sums are."""
    columns = "1 column" if state["columns"] == 1 else f"{state['columns']} columns"
    still, moving = state["still"], state["moving"]
    who = {
        "ones moving": ("p", "a column of ones"),
        "ones stationary": ("a square of ones", "p"),
        "ones beside values": (f"V with a column of ones at {WIDTH}", "p"),
    }[state["way"]]
    cycles = f"{state['cycles']} cycle" + "s" * (state["cycles"] > 1)
    more = "no product" if not state["products"] else f"{state['products']} products"
    return (
        f"{state['way'].capitalize()}, {columns}: {who[0]} {still} stands still and "
        f"{who[1]} {moving} moves, {cycles} per block of 128 keys. "
        f"For the sum over {BLOCKS * 128:,} keys that is {more} and {state['added']:,} "
        f"cycles more than without it. The result {state['result']} has "
        f"{state['lands']}; the first sum is {state['sums'][0]:g}."
    )


def array_check(state: Mapping[str, object], ones: str, columns: int) -> None:
    """Hold the sums against float64, and the cycles against the formula."""
    way = WAYS[ones]
    p = exponentials(columns).astype(np.float64)
    got, _ = sum_on_machine(way, columns)
    np.testing.assert_allclose(got, p.sum(axis=(0, 1)), rtol=1e-6)
    m, n = state["still"][1], state["moving"][1]
    assert state["cycles"] == max(min(64, m), n)
    assert state["result"] == [m, n]
    extra = {
        "ones moving": BLOCKS * min(64, columns),
        "ones stationary": BLOCKS * max(64, columns),
        "ones beside values": 0,
    }[way]
    assert state["added"] == extra


def array_figure() -> MovingFigure:
    """Return the figure: three ways to sum, one array."""
    return MovingFigure(
        name="ch17-array",
        page="notebooks/17_the_sum_that_is_a_matmul",
        caption=(
            "The array of 128 by 128 with what stands in it, to scale; what moves "
            "comes in from the left, and the result falls out below. Ones are brown "
            "(orange on a dark page), exponentials blue, values gray. With the ones "
            "beside the values a single column of the array is lit, the one that would "
            "have idled."
        ),
        axes={"Ones": tuple(WAYS), "Columns of p": COLUMNS},
        state=array_state,
        picture=array_picture,
        words=array_words,
        check=array_check,
        start=(2, 2),
    )


FIGURES = (array_figure,)
