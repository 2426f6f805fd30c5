"""A token on its way from a page to a partition (chapter 21)."""

from collections.abc import Mapping
from functools import cache

import numpy as np

from flashlib.machine import NC_V3, Machine
from flashlib.plots.ch21 import explorer_picture
from flashlib.programs import TkgConfig
from flashlib.programs.cache_call import to_pages
from flashlib.programs.slot_layout import SlotLayout
from flashlib.programs.tkg.arrays import HbmArrays
from flashlib.programs.tkg.pages import load_block_index
from flashlib.programs.tkg.run import Core
from flashlib.programs.tkg.sizes import TkgSizes, sizes_of
from flashlib.programs.tkg.values import load_values
from flashlib.widgets.figure import MovingFigure

SLOTS, SEED = 2048, 21
#: Bytes of one row of the cache: width 128 in bfloat16.
ROW_BYTES = 256
PAGE_LENGTHS = (4, 16, 64, 128)
TOKENS = (0, 5, 300, 1023, 1500, 2047)


def paged_sizes(page: int) -> TkgSizes:
    """Return the sizes of a call over 2,048 slots in pages."""
    config = TkgConfig(curr_sprior=SLOTS, full_sprior=SLOTS, block_len=page)
    return sizes_of(1, 1, 1, 1, config, 1, page)


@cache
def table_of(page: int) -> np.ndarray:
    """Return the page table of the figure."""
    tokens = np.arange(SLOTS, dtype=np.float32).reshape(1, SLOTS, 1)
    return to_pages((tokens,), page, SEED)[0][0]


@cache
def gathered(page: int) -> np.ndarray:
    """Gather a cache whose values are token numbers, with the code of the kernel.

    Returns
    -------
    ndarray
        ``[128, 16]``: which token lies at every partition and free position.
    """
    tokens = np.arange(SLOTS, dtype=np.float32).reshape(1, SLOTS, 1)
    table, (pool,) = to_pages((tokens,), page, SEED)
    m, s = Machine(), paged_sizes(page)
    parts = m.hbm.put(pool.reshape(-1, s.block_len))
    hbm = HbmArrays(table=m.hbm.put(table), k_pages=parts, v_pages=parts)
    config = TkgConfig(curr_sprior=SLOTS, full_sprior=SLOTS, block_len=page)
    dtype = np.dtype(np.float32)
    core = Core(m, s, config, False, hbm, dtype, dtype)
    (tile,) = core.slot_tiles(0, 1, load_block_index(core, 0, 1))
    values = load_values(core, tile._replace(active=False), 0)
    return values.numpy()[:, :, 0].astype(int)


def explorer_state(page: int, token: int) -> dict[str, object]:
    """Follow one token: page, place in the pool, part, block, fold, partition."""
    s = paged_sizes(page)
    table = table_of(page)
    number, offset = divmod(token, page)
    part = offset // s.block_len
    ((partition, free),) = np.argwhere(gathered(page) == token).tolist()
    run = s.block_len * ROW_BYTES
    return {
        "page_length": page,
        "token": token,
        "pages": len(table),
        "pool": len(table) + 3,
        "page": number,
        "offset": offset,
        "entry": int(table[number]),
        "factor": s.factor,
        "unit": s.block_len,
        "part": part,
        "block": int(table[number]) * s.factor + part,
        "folds": SLOTS // (128 * s.block_len),
        "fold": free // s.block_len,
        "partition": partition,
        "free": free,
        "run_bytes": run,
        "share": round(100 * run / (run + NC_V3.dma_half_run_bytes)),
    }


def explorer_words(state: Mapping[str, object]) -> str:
    """Say where the token is, in the table, in the pool and on chip."""
    parts = f"cut into {state['factor']} blocks of {state['unit']}"
    if state["factor"] == 1:
        parts = f"left whole, as blocks of {state['unit']}"
    return (
        f"Pages of {state['page_length']} tokens: token {state['token']:,} is number "
        f"{state['offset']} of page {state['page']}, which lies at place "
        f"{state['entry']} of the pool. Pages are {parts}; the token is in block "
        f"{state['block']}, gathered in fold {state['fold'] + 1} of {state['folds']} "
        f"to partition {state['partition']}, free position {state['free']}. A run is "
        f"{state['run_bytes']:,} bytes, at {state['share']}% of the DMA rate."
    )


def explorer_check(state: Mapping[str, object], page: int, token: int) -> None:
    """Hold what was gathered against the formula of the layout."""
    unit = state["unit"]
    assert page == unit * state["factor"]
    layout = SlotLayout(SLOTS // 128, unit)
    np.testing.assert_array_equal(gathered(page), layout.slots())
    fold, rest = divmod(token, 128 * unit)
    assert (state["fold"], state["partition"]) == (fold, rest // unit)
    assert state["free"] == fold * unit + rest % unit
    assert state["page"] * page + state["offset"] == token


def explorer_figure() -> MovingFigure:
    """Return the figure: from a page table to a partition."""
    return MovingFigure(
        name="ch21-pages",
        page="notebooks/21_the_cache_on_the_machine",
        caption=(
            "One token of 2,048 in a cache of pages. Above, its page in the order of "
            "the sequence and its place in the pool; below, the page with its cuts. "
            "On the right the memory on chip, 128 partitions by 16 positions: the "
            "block that arrived with the token is blue, the token itself brown "
            "(orange on a dark page)."
        ),
        axes={"Page length": PAGE_LENGTHS, "Token": TOKENS},
        state=explorer_state,
        picture=explorer_picture,
        words=explorer_words,
        check=explorer_check,
        start=(2, 2),
    )


FIGURES = (explorer_figure,)
