"""Query heads as columns that slide past one block of keys (chapter 20)."""

from collections.abc import Mapping

from flashlib.errors import ShapeError
from flashlib.experiments.head_costs import SLOTS, WIDTH, head_costs
from flashlib.plots.ch20 import heads_picture
from flashlib.programs.blocks import PARTITIONS
from flashlib.widgets.figure import MovingFigure

HEADS = (1, 2, 4, 8, 16, 32, 64, 128, 129, 256, 512)
TOKENS = (1, 2, 4)


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
    one = state["columns"] == 1
    columns = "1 column" if one else f"{state['columns']:,} columns"
    what = f"{heads}, {tokens}: {columns}"
    if state["refused"]:
        return f"{what}, refused; one bank holds 512 columns."
    pieces = "1 piece" if state["sum"] == 2 else f"{state['sum'] // 2} pieces"
    return (
        f"{what} slide{'s' * one} past each block of keys, {state['mm1']} products; "
        f"keys and values {state['loaded']:,} bytes, with a copy for every head "
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
    blocks, pieces = SLOTS // PARTITIONS, -(-columns // PARTITIONS)
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
