"""The machine viewer: one instruction of the decode program at a time (chapter 15)."""

from collections.abc import Mapping
from functools import cache

import numpy as np

from flashlib.machine.machine import Machine
from flashlib.machine.trace import Operand
from flashlib.plots.ch15 import viewer
from flashlib.programs.decode_sizes import Sizes
from flashlib.programs.decode_tile import (
    decode_tile,
    load_queries,
    step1_scores,
    step2_max,
    step3_exp,
    step4_sum,
    step5_values,
    store,
    validity,
)
from flashlib.reference import materialized_attention
from flashlib.row import KEYS, QUERY, SCORES, VALUES
from flashlib.widgets.figure import MovingFigure
from flashlib.widgets.machine_watch import Watch

ROW = tuple(
    np.float32(x).reshape(n, 1, 2) for x, n in ((QUERY, 1), (KEYS, 6), (VALUES, 6))
)
CORNER = 6  # rows and columns of a tensor that are shown
INPUTS = ("q", "k", "v")
# Tensors in the order in which the program first writes them, by its own names.
CHIP = (
    *("raw", "scaled", "index", "mask", "scores", "keys", "qk", "lanes", "flipped"),
    *("tops", "clamped", "wide", "flipped", "peak", "p", "ones", "sums", "parts"),
    *("row", "factor", "values", "total", "out", "out"),
)
SAYS = (
    "Bring the query in. Its two components lie on two partitions.",
    "Scale the query once. The row is scaled by 1.",
    "Number the partitions: partition p gets p.",
    "Compare with 6. The flags say which keys exist.",
    "Fill the scores with −∞.",
    "Clear the columns of the keys that do not exist.",
    "Bring K in, transposed: one column per key.",
    "keysᵀ @ scaled puts the score of key p on partition p.",
    "Copy where the flag is 1. The rest keeps its −∞.",
    "Maximum over the blocks of keys. There is one block.",
    "Lanes do not meet, so turn the column into a row.",
    "Now the maximum runs along the free axis.",
    "Clamp at the lowest finite number: a row without keys would have −∞.",
    "Repeat it 128 times along the free axis, where a step of 0 is legal.",
    "Turn the row into a column. Every partition has the maximum.",
    "Copy it out of PSUM.",
    "Subtract. No score is above 0 any more.",
    "Take exponentials on the scalar engine.",
    "Make a column of ones.",
    "Make room for the sums.",
    "pᵀ @ ones adds over the partitions: the denominator.",
    "Add the sums of the blocks. There is one.",
    "One reciprocal replaces a division per number.",
    "Turn the column of reciprocals into a row. It has one number here.",
    "Copy the row to partitions 0 to 31.",
    "Copy the row to partitions 32 to 63.",
    "Copy the row to partitions 64 to 95.",
    "Copy the row to partitions 96 to 127.",
    "Clear a block for V.",
    "Bring V in: the value of key p lies on partition p.",
    "valuesᵀ @ p weighs the values. Components lie on partitions again.",
    "Normalize on the way out of PSUM.",
    "Store the answer.",
)


@cache
def watched_row() -> Watch:
    """Run the decode program on the row, watched."""
    m = Machine()
    m.isa = watch = Watch(m)
    q, k, v = (m.hbm.put(x) for x in ROW)
    sizes = Sizes(1, 6, 1, 1, 2, 2)
    queries = load_queries(m, q, 1.0, sizes)
    scores = step1_scores(m, queries, k, validity(m, sizes), sizes)
    p = step3_exp(m, scores, step2_max(m, scores), q.dtype)
    out = step5_values(m, p, v, step4_sum(m, p), sizes)
    store(m, out, (1, 1), sizes)
    return watch


def _names() -> dict[int, str]:
    """Name every tensor: the inputs by number, the others by their first write."""
    records = [moment.record for moment in watched_row().moments]
    written = list(dict.fromkeys(o.tensor.id for r in records for o in r.writes))
    read = list(dict.fromkeys(o.tensor.id for r in records for o in r.reads))
    inputs = [number for number in read if number not in written]
    return dict(zip([*inputs, *written], INPUTS + CHIP, strict=True))


def viewer_state(number: int) -> dict[str, object]:
    """Return one instruction, its operands with values, and the live tensors."""
    watch, names = watched_row(), _names()
    moment, spec = watch.moments[number - 1], watch.machine.spec
    record = moment.record
    touched = {o.tensor.id: "read" for o in record.reads}
    touched |= {o.tensor.id: "written" for o in record.writes}
    chip = {"sbuf": [], "psum": [["", ""]] * spec.psum_banks}
    for held in moment.held:
        entry = [names[held.number], touched.get(held.number, "")]
        if held.memory == "sbuf":
            chip["sbuf"].append(entry)
        else:
            chip["psum"][held.bank] = entry
    panels = [_panel(names, o, moment.reads) for o in record.reads]
    panels += [_panel(names, o, moment.writes) for o in record.writes]
    return {
        "number": number,
        "count": len(watch.moments),
        "op": record.op,
        "engine": record.engine,
        "step": record.step,
        "says": SAYS[number - 1],
        "reads": len(record.reads),
        "panels": panels,
        **chip,
        "used": moment.used,
        "capacity": spec.sbuf_bytes_per_partition,
    }


def _panel(
    names: Mapping[int, str], o: Operand, values: Mapping[str, np.ndarray]
) -> dict[str, object]:
    """Cut an operand down to the corner that the picture shows."""
    array = values[o.name]
    rows = array.size // array.shape[-1] if o.start is None else array.shape[0]
    grid = array.reshape(rows, -1)
    shown = list(range(min(rows, CORNER)))
    if rows > CORNER:
        shown.append(rows - 1)
    return {
        "name": names[o.tensor.id],
        "memory": o.memory,
        "shape": list(grid.shape),
        "rows": [(o.start or 0) + r for r in shown],
        "cells": [[_cell(x) for x in grid[r, :CORNER]] for r in shown],
    }


def _cell(value: float) -> str:
    """Write a number in five characters or six."""
    if np.isnan(value):
        return "·"
    if np.isinf(value):
        return "−∞" if value < 0 else "∞"
    digits = 0 if value == round(value) else 3
    return f"{value:.{digits}f}".replace("-", "−")


def viewer_words(state: Mapping[str, object]) -> str:
    """Say the instruction, what it reads and the numbers that it writes."""
    reads = state["panels"][: state["reads"]]
    wrote = state["panels"][-1]
    source = " and ".join(_where(panel) for panel in reads)
    first = [row[0] for row in wrote["cells"]]
    numbers = first if len(first) > 1 else wrote["cells"][0]
    if len(first) > 1 and wrote["shape"][0] > len(first):
        numbers = [*first[:-1], "and so on to", first[-1]]
    elif len(first) == 1 and wrote["shape"][1] > len(numbers):
        numbers = [*numbers, "and so on"]
    return (
        f"Instruction {state['number']} of {state['count']}, {state['op']} on the "
        f"{state['engine']} engine, step {state['step']}. {state['says']} "
        f"It {f'reads {source} and ' if reads else ''}writes {_where(wrote)}, whose "
        f"{'first column' if len(first) > 1 else 'first row'} now is "
        f"{', '.join(numbers).replace('to,', 'to')}."
    )


def _where(panel: Mapping[str, object]) -> str:
    rows, columns = panel["shape"]
    return f"{panel['name']} [{rows}, {columns}] in {panel['memory'].upper()}"


def viewer_check(state: Mapping[str, object], number: int) -> None:
    """Hold the run against the packaged program, and its values against the row."""
    q, k, v = ROW
    result = decode_tile(q, k, v, scale=1.0)
    record = result.trace.records[number - 1]
    assert len(result.trace) == state["count"] == len(SAYS)
    assert (record.op, record.engine, record.step) == (
        state["op"],
        state["engine"],
        state["step"],
    )
    moment = watched_row().moments[number - 1]
    (wrote,) = moment.writes.values()
    p = np.exp(SCORES - SCORES.max())
    exact = materialized_attention(q, k, v, scale=1.0).out.ravel()
    expected = {
        "nc_matmul mm1": [*SCORES, *[0] * 122],
        "tensor_copy_predicated mm1": [*SCORES, *[-np.inf] * 122],
        "tensor_copy max": [SCORES.max()] * 128,
        "activation exp": [*p, *[0] * 122],
        "nc_matmul sum": p.sum(),
        "nc_stream_shuffle recip": [1 / p.sum()] * 32,
        "nc_matmul mm2": p @ VALUES,
        "dma_copy store": exact,
    }.get(f"{record.op} {record.step}")
    if expected is not None:
        np.testing.assert_allclose(wrote.ravel(), expected, rtol=1e-6)


def viewer_figure() -> MovingFigure:
    """Return the figure: the decode program on the row, step by step."""
    return MovingFigure(
        name="ch15-viewer",
        page="notebooks/15_a_machine_with_128_partitions",
        caption=(
            "The decode program of the next chapter on the row of the book, one "
            "instruction at a time. Numbers left of a grid are partitions. Blue is "
            "read; brown (orange on a dark page) with a bold frame is written. Below "
            "stand the tensors that are alive in SBUF, in the order of the stack, and "
            "the eight banks of PSUM. Names are those of the program."
        ),
        axes={"Instruction": tuple(range(1, len(SAYS) + 1))},
        state=viewer_state,
        picture=viewer,
        words=viewer_words,
        check=viewer_check,
        start=(7,),
        play=True,
    )


FIGURES = (viewer_figure,)
