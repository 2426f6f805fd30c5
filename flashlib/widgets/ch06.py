"""One mask, told twice: written as data, or as the end of a loop (chapter 6)."""

from collections.abc import Mapping

import numpy as np

from flashlib.attention import flash_attention
from flashlib.masks import causal_mask
from flashlib.plots.ch06 import mask_grid
from flashlib.problem import Problem, attention_problem
from flashlib.reference import materialized_attention
from flashlib.testing import make_qkv
from flashlib.traffic import visited_pairs
from flashlib.widgets.figure import MovingFigure

SEQ_K = 6
WAYS = ("data", "loop bound")


def _problem(seq_q: int) -> Problem:
    q, k, v = make_qkv(seq_q, SEQ_K, n_heads=1, n_kv_heads=1, head_dim=2)
    return attention_problem(q, k, v, causal=True)[0]


def mask_state(way: str, seq_q: int) -> dict[str, object]:
    """Count what both ways compute for some queries on six keys."""
    problem = _problem(seq_q)
    ends = [problem.kv_range(i)[1] for i in range(seq_q)]
    met = [SEQ_K] * seq_q if way == "data" else ends
    pairs, needed = sum(met), sum(ends)
    state = {
        "way": way,
        "seq_q": seq_q,
        "seq_k": SEQ_K,
        "ends": ends,
        "met": met,
        "pairs": pairs,
        "needed": needed,
        "empty_rows": ends.count(0),
    }
    state["title"] = f"{seq_q} × {SEQ_K}, offset {problem.offset}".replace("-", "−")
    state["lines"] = _lines(state)
    return state


def _lines(state: Mapping[str, object]) -> list[list[str]]:
    pairs, spare = state["pairs"], state["pairs"] - state["needed"]
    lines = [
        [f"mask as {state['way']}", ""],
        ["scores", f"{pairs}"],
        ["−∞ written over a score", f"{spare}"],
        ["exponentials", f"{pairs}"],
        ["value rows read", f"{pairs}"],
        ["of these for nothing", f"{spare}"],
        ["", ""],
        [f"needed: {state['needed']} of {state['seq_q'] * SEQ_K} pairs", ""],
    ]
    if state["empty_rows"]:
        word = "row" if state["empty_rows"] == 1 else "rows"
        lines.append([f"{state['empty_rows']} {word} without keys: out = 0", ""])
    return lines


def mask_words(state: Mapping[str, object]) -> str:
    """Say how far each row walks and what is computed."""
    ends = ", ".join(str(end) for end in state["ends"])
    queries = "1 query" if state["seq_q"] == 1 else f"{state['seq_q']} queries"
    head = f"{queries} on {SEQ_K} keys, causal, mask as {state['way']}. "
    empty = (
        f" Rows without keys, which come out as 0: {state['empty_rows']}."
        if state["empty_rows"]
        else ""
    )
    if state["way"] == "data":
        return (
            f"{head}Every row meets all {SEQ_K} keys: {state['pairs']} scores and "
            f"exponentials, {state['pairs'] - state['needed']} of them for keys that "
            f"are masked. Needed by row: {ends}.{empty}"
        )
    return (
        f"{head}Row by row the walk stops after {ends} keys: {state['pairs']} scores "
        f"and exponentials, none of them for a masked key.{empty}"
    )


def mask_check(state: Mapping[str, object], way: str, seq_q: int) -> None:
    """Compare bounds with the mask as a matrix, and both ways with each other."""
    mask = causal_mask(seq_q, SEQ_K)
    assert state["ends"] == mask.sum(axis=1).tolist()
    assert state["needed"] == visited_pairs(seq_q, SEQ_K, None, 0) == mask.sum()
    assert state["pairs"] == (mask.size if way == "data" else mask.sum())
    q, k, v = make_qkv(seq_q, SEQ_K, dtype=np.float64)
    as_data = materialized_attention(q, k, v, mask=mask)
    as_bound = flash_attention(q, k, v, causal=True, backend="numpy")
    np.testing.assert_allclose(as_bound.out, as_data.out, rtol=1e-12, atol=1e-14)
    assert np.count_nonzero(as_bound.lse[:, 0] == -np.inf) == state["empty_rows"]


def mask_figure() -> MovingFigure:
    """Return the figure: the same mask as data and as a loop bound."""
    return MovingFigure(
        name="ch06-loop-bound",
        page="notebooks/06_the_loop_bound",
        caption=(
            "Each row is a query, each column a key. Blue pairs are attended. As data, "
            "the mask is written over scores that were computed; as a loop bound, the "
            "row ends at the thick line and the rest is never touched. Change the "
            "number of queries: the last one always sits on the last key."
        ),
        axes={"Mask as": WAYS, "Queries": tuple(range(1, 9))},
        state=mask_state,
        picture=mask_grid,
        words=mask_words,
        check=mask_check,
        start=(0, 5),
    )


FIGURES = (mask_figure,)
