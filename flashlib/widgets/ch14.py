"""The page-table explorer: the row of the book in pages, forked (chapter 14)."""

from collections.abc import Mapping
from functools import cache

import numpy as np

from flashlib.cache import PagedCache
from flashlib.decode import flash_attention_decode, flash_attention_paged
from flashlib.plots.ch14 import page_table
from flashlib.row import SCORES, VALUES
from flashlib.widgets.figure import MovingFigure

SLOTS = 12
PAGE_LENGTHS = (1, 2, 3)
# The tokens of the row by number, and two guesses that will turn out wrong.
TOKENS = {str(j): (SCORES[j], tuple(VALUES[j])) for j in range(6)} | {
    "x": (6.0, (3.0, 3.0)),
    "y": (7.0, (1.0, 5.0)),
}
HISTORY = (
    ("all pages are free", "start"),
    ("A appends 0, 1, 2", "append", ("0", "1", "2")),
    ("B is forked from A", "fork"),
    ("A appends 3, B guesses x", "append", ("3",), ("x",)),
    ("A appends 4, B guesses y", "append", ("4",), ("y",)),
    ("B forgets x and y", "truncate"),
    ("A appends 5, B appends 3", "append", ("5",), ("3",)),
    ("B is freed", "free"),
)


def _rows(names: tuple[tuple[str, ...], ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return keys and values of some tokens, one row for each sequence."""
    k = np.array([[[TOKENS[t][0]] for t in row] for row in names], np.float32)
    v = np.array([[TOKENS[t][1] for t in row] for row in names], np.float32)
    return k[:, :, None], v[:, :, None]


@cache
def _replay(step: int, block_len: int) -> tuple[PagedCache, tuple[str, ...]]:
    """Run the history up to a step; also return what the last step copied."""
    pages = SLOTS // block_len
    store = PagedCache(1, pages, block_len, n_kv_heads=1, head_dim=1, head_dim_v=2)
    before = store.block_table
    for _, what, *tokens in HISTORY[: step + 1]:
        before = store.block_table
        if what == "append":
            store.append(*_rows(tuple(tokens)))
        elif what == "fork":
            store.fork(0)
        elif what == "truncate":
            store.truncate(1, 3)
        elif what == "free":
            store.free(1)
    return store, _copied(before, store.block_table)


def _copied(before: np.ndarray, after: np.ndarray) -> tuple[str, ...]:
    """Name the pages that a row gave up for another in the same place."""
    both = zip(before.ravel(), after[: len(before)].ravel(), strict=True)
    return tuple(f"{a} to {b}" for a, b in both if a >= 0 and b >= 0 and a != b)


def _held(store: PagedCache) -> list[list[str]]:
    """Read every slot: the token in it, or nothing if it was never written."""
    names = {(k, *v): name for name, (k, v) in TOKENS.items()} | {(0.0, 0.0, 0.0): ""}
    slots = np.concatenate([store.k, store.v], axis=3)[:, :, 0]
    return [[names[tuple(map(float, slot))] for slot in page] for page in slots]


def _attend(store: PagedCache) -> dict[str, list[float]]:
    """Attend one query to each sequence that holds tokens, where its pages lie."""
    live = np.flatnonzero(store.seqlens)
    out, _ = flash_attention_paged(
        np.ones((len(live), 1, 1, 1), np.float32),
        store.k,
        store.v,
        block_table=store.block_table[live],
        cache_seqlens=store.seqlens[live],
        scale=1.0,
        backend="numpy",
    )
    answers = zip(live, out[:, 0, 0], strict=True)
    return {"AB"[b]: [round(float(x), 4) for x in row] for b, row in answers}


def pages_state(block_len: int, step: int) -> dict[str, object]:
    """Return who owns which page, what lies in it, and what attention gives."""
    store, copied = _replay(step, block_len)
    tables = [[int(page) for page in row if page >= 0] for row in store.block_table]
    owners = [
        "".join("AB"[b] for b, table in enumerate(tables) if page in table)
        for page in range(store.num_blocks)
    ]
    lengths = [int(n) for n in store.seqlens]
    state = {
        "step": step,
        "block_len": block_len,
        "title": HISTORY[step][0],
        "lengths": lengths,
        "tables": tables,
        "owners": owners,
        "held": _held(store),
        "copied": list(copied),
        "free": store.free_blocks,
        "shared": sum(len(who) == 2 for who in owners),
        "empty": _empty(tables, lengths, block_len),
        "out": _attend(store),
    }
    state["lines"] = _lines(state)
    return state


def _empty(tables: list[list[int]], lengths: list[int], block_len: int) -> int:
    """Count the slots of owned pages that hold no token of any owner."""
    read: dict[int, int] = {}
    for table, length in zip(tables, lengths, strict=True):
        for place, page in enumerate(table):
            live = min(length - place * block_len, block_len)
            read[page] = max(read.get(page, 0), live)
    return sum(block_len - live for live in read.values())


def _lines(state: Mapping[str, object]) -> list[str]:
    """Count pages, and write the answers."""
    used = len(state["owners"]) - state["free"]
    first = f"{used} of {len(state['owners'])} pages in use, {state['shared']} shared"
    copied = f"; copied: page {', '.join(state['copied'])}" if state["copied"] else ""
    answers = [
        f"{who} answers ({a:.4f}, {b:.4f})" for who, (a, b) in state["out"].items()
    ]
    return [first + copied, "; ".join(answers)]


def pages_words(state: Mapping[str, object]) -> str:
    """Say the step, the tables, and what is shared and copied."""
    rows = zip("AB", state["lengths"], state["tables"], strict=False)
    tables = "; ".join(
        f"{name} holds {n} token{'s' * (n != 1)} in page{'s' * (len(table) > 1)} "
        f"{', '.join(map(str, table))}"
        if table
        else f"{name} holds 0 tokens and no page"
        for name, n, table in rows
    )
    shared = [str(p) for p, who in enumerate(state["owners"]) if len(who) == 2]
    copied = "".join(
        f" Page {pair.replace(' to ', ' was copied to page ')} before it was written."
        for pair in state["copied"]
    )
    answers = f" {state['lines'][1]}." if state["out"] else ""
    return (
        f"Pages of {state['block_len']}, step {state['step']}: {state['title']}. "
        f"{tables}. Shared pages: {', '.join(shared) or 'none'}; free pages: "
        f"{state['free']}; slots owned and empty: {state['empty']}.{copied}{answers}"
    )


# What the sequences say after each step, token by token.
SPOKEN = (
    ("",),
    ("012",),
    ("012", "012"),
    ("0123", "012x"),
    ("01234", "012xy"),
    ("01234", "012"),
    ("012345", "0123"),
    ("012345", ""),
)


def pages_check(state: Mapping[str, object], block_len: int, step: int) -> None:
    """Follow the tables by hand, and attend to the same tokens without pages."""
    for b, spoken in enumerate(SPOKEN[step]):
        table = state["tables"][b]
        read = [state["held"][page] for page in table]
        flat = [token for page in read for token in page][: len(spoken)]
        assert "".join(flat) == spoken and state["lengths"][b] == len(spoken)
        assert len(table) == -(-len(spoken) // block_len)
        if spoken:
            assert state["out"]["AB"[b]] == _contiguous(spoken)
    owned = {page for table in state["tables"] for page in table}
    assert state["free"] == len(state["owners"]) - len(owned)
    # A page is copied where the fork met a page that was not full.
    assert bool(state["copied"]) == (step == 3 and 3 % block_len != 0)


def _contiguous(spoken: str) -> list[float]:
    k, v = _rows((tuple(spoken),))
    out, _ = flash_attention_decode(
        np.ones((1, 1, 1, 1), np.float32),
        k,
        v,
        cache_seqlens=[len(spoken)],
        scale=1.0,
        backend="numpy",
    )
    return [round(float(x), 4) for x in out.ravel()]


def pages_figure() -> MovingFigure:
    """Return the figure: two sequences, their tables, and the pages they share."""
    return MovingFigure(
        name="ch14-page-table",
        page="notebooks/14_one_query_the_whole_cache",
        caption=(
            "Above, the two sequences as they read: tokens in order, with the page of "
            "each group below. Underneath, the memory: who owns a page, and what lies "
            "in its slots. Step through the fork at different page lengths. A page is "
            "copied only if it is shared, not full, and about to be written. Slots in "
            "parentheses hold tokens that nobody will read."
        ),
        axes={"Tokens per page": PAGE_LENGTHS, "Step": tuple(range(len(HISTORY)))},
        state=pages_state,
        picture=page_table,
        words=pages_words,
        check=pages_check,
        start=(1, 3),
        play=True,
    )


FIGURES = (pages_figure,)
