"""Query heads as columns that slide past one block of keys (chapter 20)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import ml_dtypes
import numpy as np

from flashlib.errors import ShapeError
from flashlib.plots.ch20 import heads_picture
from flashlib.programs.slot_call import decode_slots
from flashlib.widgets.figure import MovingFigure

SLOTS, WIDTH, LANES = 256, 16, 128
HEADS = (1, 2, 4, 8, 16, 32, 64, 128, 129, 256, 512)
TOKENS = (1, 2, 4)
BF16 = ml_dtypes.bfloat16


@cache
def head_costs(
    n_heads: int, seq: int, slots: int = SLOTS, width: int = WIDTH
) -> dict[str, int]:
    """Run the decode kernel in bfloat16 and read its costs off the trace.

    Parameters
    ----------
    n_heads, seq : int
        Query heads over one key/value head, and new tokens.
    slots, width : int
        Length of the cache and head_dim.

    Returns
    -------
    dict of str to int
        ``loaded`` bytes of keys and values, the bytes on chip of ``scores``,
        ``exponentials`` and ``mask``, the products of three steps, and the transposes
        behind the maximum.
    """
    rng = np.random.default_rng(20)
    shapes = (seq, n_heads, width), (slots, 1, width), (slots, 1, width)
    q, k, v = (rng.standard_normal(shape).astype(BF16) for shape in shapes)
    trace = decode_slots(q, k, v, strided=False).traces[0]
    counts = trace.histogram(by=("step", "op"))
    first = {(r.step, r.op): r for r in reversed(trace.records)}
    held = {
        "scores": first["mm1", "memset"].writes[0],
        "exponentials": first["exp", "activation"].writes[0],
    }
    size = {k: int(np.prod(o.shape)) * o.dtype.itemsize for k, o in held.items()}
    mask = sum(
        int(np.prod(r.read("predicate").shape))
        for r in trace
        if r.op == "tensor_copy_predicated"
    )
    return {
        "loaded": trace.bytes(step="k_load") + trace.bytes(step="v_load"),
        **size,
        "mask": mask,
        "mm1": counts["mm1", "nc_matmul"],
        "sum": counts["sum", "nc_matmul"],
        "mm2": counts["mm2", "nc_matmul"],
        "transposes": counts["max", "nc_transpose"],
    }


def heads_state(n_heads: int, seq: int) -> dict[str, object]:
    """Return columns, costs, and whether the kernel refuses them."""
    state = {"heads": n_heads, "tokens": seq, "columns": n_heads * seq}
    try:
        costs = head_costs(n_heads, seq)
    except ShapeError:
        return {**state, "refused": True}
    return {**state, "refused": False, "copied": costs["loaded"] * n_heads, **costs}


def heads_words(state: Mapping[str, object]) -> str:
    """Say the columns, what stays and what grows, and which limit bites."""
    heads = "1 head" if state["heads"] == 1 else f"{state['heads']} heads"
    tokens = "1 token" if state["tokens"] == 1 else f"{state['tokens']} tokens"
    what = f"{heads}, {tokens}: {state['columns']:,} columns"
    if state["refused"]:
        return f"{what}, refused; one bank holds 512 columns."
    pieces = "1 piece" if state["sum"] == 2 else f"{state['sum'] // 2} pieces"
    return (
        f"{what} slide past each block of keys, {state['mm1']} products; keys and "
        f"values {state['loaded']:,} bytes, with a copy for every head "
        f"{state['copied']:,}; scores {state['scores']:,}, exponentials "
        f"{state['exponentials']:,}, mask {state['mask']:,} bytes; the sum takes "
        f"{pieces}."
    )


def heads_check(state: Mapping[str, object], n_heads: int, seq: int) -> None:
    """Compute every number from the sizes."""
    columns = n_heads * seq
    assert state["refused"] == (columns > 512)
    if state["refused"]:
        return
    blocks, pieces = SLOTS // LANES, -(-columns // LANES)
    assert state["loaded"] == 2 * SLOTS * WIDTH * 2 + seq * WIDTH * 2
    assert state["scores"] == SLOTS * columns * 4
    assert state["exponentials"] == SLOTS * columns * 2
    assert state["mask"] == SLOTS * columns
    assert (state["mm1"], state["mm2"]) == (blocks, blocks)
    assert state["sum"] == blocks * pieces


def heads_figure() -> MovingFigure:
    """Return the figure: heads slide through one block of keys."""
    return MovingFigure(
        name="ch20-heads",
        page="notebooks/20_gqa_for_free",
        caption=(
            "One block of 128 keys stands still while the columns of all heads move "
            "past it, to scale up to 512, the width of a bank. Dashed lines cut the "
            "columns into pieces of 128 for the maximum and the sum. Bars: bytes of "
            "a cache of 256 slots, 16 wide, in bfloat16."
        ),
        axes={"Query heads": HEADS, "New tokens": TOKENS},
        state=heads_state,
        picture=heads_picture,
        words=heads_words,
        check=heads_check,
        start=(3, 0),
    )


FIGURES = (heads_figure,)
