"""Exercises on caches in slots and pages (chapter 21)."""

import math
from collections.abc import Callable

import numpy as np

from flashlib.exercises.exercise import (
    Exercise,
    Step,
    expect,
    expect_numbers,
)
from flashlib.programs.blocks import PARTITIONS
from flashlib.programs.cache_call import to_pages
from flashlib.programs.slot_layout import SlotLayout
from flashlib.programs.tkg.sizes import resized_block_len

# ---- 21.1 ----------------------------------------------------------------------------

SLOT, N = 614, 8


def _cell(unit: int) -> list[int]:
    """Look for the slot in the layout of the package."""
    (found,) = np.argwhere(SlotLayout(N, unit).slots() == SLOT)
    return found.tolist()


def _test_three_pairs(answer: object) -> None:
    expect_numbers(answer, (3, 2), "a partition and a free position")


def _test_layout(place: int, name: str, unit: int) -> Callable:
    """Say which slots lie beside the one that was asked for."""

    def test(answer: object) -> None:
        partition, free = _cell(unit)
        run = free // unit * unit
        slots = SlotLayout(N, unit).slots()[partition, run : run + unit]
        beside = ", ".join(map(str, slots))
        got = tuple(answer[place])
        expect(
            got == (partition, free),
            f"{name}: the cell is {got}; expected {(partition, free)}, because "
            f"partition {partition} has from its free position {run} on: {beside}",
        )

    return test


def three_cells() -> list[tuple[int, int]]:
    """Divide by the run first, then by 128."""
    strided = divmod(614, 8)
    fold, partition = divmod(614, 128)
    of_fold, rest = divmod(614, 128 * 4)
    paged = (rest // 4, of_fold * 4 + rest % 4)
    return [strided, (partition, fold), paged]


cells = Exercise(
    number="21.1",
    title="Three places for slot 614",
    stars=1,
    steps=(
        Step("three pairs", _test_three_pairs),
        Step("strided", _test_layout(0, "strided", N)),
        Step("sequential", _test_layout(1, "sequential", 1)),
        Step("pages of 4 tokens", _test_layout(2, "pages of 4", 4)),
    ),
    solution=three_cells,
    wrong={
        "strided_and_sequential_swapped": [(102, 4), (76, 6), (25, 6)],
        "free_position_first": [(6, 76), (4, 102), (6, 25)],
        "strided_for_pages": [(76, 6), (102, 4), (76, 6)],
        "fold_forgotten": [(76, 6), (102, 4), (25, 2)],
        "no_fold_of_pages": [(76, 6), (102, 4), (153, 2)],
    },
    value=True,
)

# ---- 21.2 ----------------------------------------------------------------------------


def _resized(answer: Callable, *call: int) -> None:
    """Compare with the kernel: length of a cut page, and parts of a page."""
    block_len, slots, cores = call
    length = resized_block_len(block_len, slots, cores, (slots // cores,))
    want = (length, block_len // length)
    got = answer(*call)
    said = f"pages of {block_len}, {slots} slots, {cores} cores: {got!r}"
    expect_numbers(got, (2,), "the length of a block and the blocks of a page")
    expect(tuple(got) == want, f"{said}; expected {want}")


def _test_uncut(answer: Callable) -> None:
    _resized(answer, 16, 2048, 1)


def _test_cut(answer: Callable) -> None:
    _resized(answer, 128, 4096, 1)
    _resized(answer, 16, 256, 1)


def _test_many(answer: Callable) -> None:
    _resized(answer, 16, 8192, 1)


def _test_cores(answer: Callable) -> None:
    _resized(answer, 16, 2048, 2)


def _test_uneven(answer: Callable) -> None:
    _resized(answer, 16, 10240, 2)
    _resized(answer, 16, 16640, 2)


def resize(block_len: int, slots: int, cores: int) -> tuple[int, int]:
    """Let a whole number of cut pages fill every partition of a core."""
    per_partition = slots // (cores * 128)
    length = math.gcd(block_len, per_partition)
    return length, block_len // length


def _smaller(block_len: int, slots: int, cores: int) -> tuple[int, int]:
    length = min(block_len, slots // (cores * PARTITIONS))
    return length, block_len // length


def _one_core(block_len: int, slots: int, cores: int) -> tuple[int, int]:
    return resize(block_len, slots, 1)


def _exactly_128(block_len: int, slots: int, cores: int) -> tuple[int, int]:
    length = slots // (cores * PARTITIONS)
    return length, max(block_len // length, 1)


def _never_cut(block_len: int, slots: int, cores: int) -> tuple[int, int]:
    return block_len, 1


def _factor_first(block_len: int, slots: int, cores: int) -> tuple[int, int]:
    return resize(block_len, slots, cores)[::-1]


cut = Exercise(
    number="21.2",
    title="Cut until 128 fit",
    stars=2,
    steps=(
        Step("128 pages for 128 partitions stay whole", _test_uncut),
        Step("fewer pages are cut", _test_cut),
        Step("four times 128 pages stay whole", _test_many),
        Step("two cores have half of the slots each", _test_cores),
        Step("the cut pages fill every fold", _test_uneven),
    ),
    solution=resize,
    wrong={
        "smaller_of_both": _smaller,
        "one_core": _one_core,
        "exactly_128": _exactly_128,
        "never_cut": _never_cut,
        "factor_first": _factor_first,
    },
    right={
        "a_list": lambda *call: list(resize(*call)),
        "an_array": lambda *call: np.array(resize(*call)),
    },
)

# ---- 21.3 ----------------------------------------------------------------------------


def _tokens(answer: Callable, block_len: int, slots: int, core: int, cores: int):
    """Gather token numbers by the index of an answer, ``[128, folds, unit]``."""
    unit = resized_block_len(block_len, slots, cores, (slots // cores,))
    tokens = np.arange(slots).reshape(1, slots, 1)
    table, (pool,) = to_pages((tokens,), block_len, seed=21)
    index = answer(table[0].astype(np.int64), block_len // unit, core, cores)
    share = slots // cores
    folds = share // (PARTITIONS * unit)
    shape = np.shape(index)
    expect(
        shape == (PARTITIONS, folds),
        f"the index is {shape}; expected {(PARTITIONS, folds)}",
    )
    parts = pool.reshape(-1, unit)
    index = np.asarray(index)
    expect(
        index.dtype.kind in "iu",
        f"the index has entries like {index.flat[0]!r}; expected whole numbers of an "
        "integer type",
    )
    top, low = int(index.max()), int(index.min())
    expect(
        low >= 0 and top < len(parts),
        f"block numbers run from {low} to {top}; expected 0 to {len(parts) - 1}",
    )
    want = SlotLayout(share // PARTITIONS, unit).slots(core * share)
    return parts[index], want.reshape(PARTITIONS, folds, unit)


def _test_index(*call: int) -> Callable:
    def test(answer: Callable) -> None:
        got, want = _tokens(answer, *call)
        wrong = np.argwhere((got != want).any(axis=2))
        if len(wrong):
            p, fold = wrong[0]
            expect(
                False,
                f"partition {p}, fold {fold} gets token {got[p, fold, 0]}; expected "
                f"{want[p, fold, 0]}",
            )

    return test


def block_index(table: np.ndarray, factor: int, core: int, cores: int) -> np.ndarray:
    """Number the parts of every page, keep a core's share, lay 128 down a column."""
    parts = table[:, None] * factor + np.arange(factor)
    share = parts.reshape(cores, -1)[core]
    return share.reshape(-1, 128).T


def _rows_across(table: np.ndarray, factor: int, core: int, cores: int) -> np.ndarray:
    parts = (table[:, None] * factor + np.arange(factor)).reshape(cores, -1)
    return parts[core].reshape(128, -1)


def _entries_as_blocks(
    table: np.ndarray, factor: int, core: int, cores: int
) -> np.ndarray:
    parts = table[:, None] + np.arange(factor)
    return parts.reshape(cores, -1)[core].reshape(-1, 128).T


def _parts_outside(table: np.ndarray, factor: int, core: int, cores: int) -> np.ndarray:
    parts = table[None, :] * factor + np.arange(factor)[:, None]
    return parts.reshape(cores, -1)[core].reshape(-1, 128).T


def _first_core(table: np.ndarray, factor: int, core: int, cores: int) -> np.ndarray:
    return block_index(table, factor, 0, cores)


def _cores_alternate(
    table: np.ndarray, factor: int, core: int, cores: int
) -> np.ndarray:
    parts = (table[:, None] * factor + np.arange(factor)).reshape(-1, cores)
    return parts[:, core].reshape(-1, 128).T


def _table_split_first(
    table: np.ndarray, factor: int, core: int, cores: int
) -> np.ndarray:
    return block_index(table.reshape(cores, -1)[core], factor, 0, 1)


def _table_split_unevenly(
    table: np.ndarray, factor: int, core: int, cores: int
) -> np.ndarray:
    return block_index(np.array_split(table, cores)[core], factor, 0, 1)


index = Exercise(
    number="21.3",
    title="The table on the partitions",
    stars=3,
    steps=(
        Step("128 whole pages, one fold", _test_index(16, 2048, 0, 1)),
        Step("four folds", _test_index(4, 2048, 0, 1)),
        Step("pages cut in eight", _test_index(128, 2048, 0, 1)),
        Step("the second of two cores", _test_index(64, 4096, 1, 2)),
        Step("three pages for two cores", _test_index(256, 768, 1, 2)),
    ),
    solution=block_index,
    wrong={
        "rows_across": _rows_across,
        "entries_as_blocks": _entries_as_blocks,
        "parts_outside": _parts_outside,
        "always_the_first_core": _first_core,
        "cores_alternate": _cores_alternate,
        "table_split_first": _table_split_first,
        "table_split_unevenly": _table_split_unevenly,
    },
)

EXERCISES = (cells, cut, index)
