"""Exercises on the tiled loop, its state and what it reads (chapter 5)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from flashlib.traffic import ENGINE_PASSES, TEXT_PASSES, crossings

from .exercise import Exercise, Step, expect, expect_close

State = tuple[float, float, np.ndarray]

# ---- 5.1 -----------------------------------------------------------------------------


def _test_three(answer: object) -> None:
    size = np.shape(answer)
    expect(size == (3,), f"the answer has shape {size}; expected three numbers")


def _test_scores(answer: object) -> None:
    want = np.zeros(64, np.float32).nbytes
    expect(answer[0] == want, f"the tile of scores is {answer[0]}; expected {want} B")


def _test_numerator(answer: object) -> None:
    want = np.zeros(128, np.float32).nbytes
    expect(answer[1] == want, f"the numerator is {answer[1]}; expected {want} B")


def _test_column(answer: object) -> None:
    repeated = np.repeat(np.arange(8), 2)  # the KV head that each query head reads
    want = int(repeated[11]) * 128
    expect(
        answer[2] == want,
        f"the first column is {answer[2]}; query heads 0 and 1 read KV head 0, "
        f"so head 11 reads KV head {repeated[11]}, which starts at column {want}",
    )


def state_and_stripe() -> tuple[int, int, int]:
    """Four bytes a float; query head 11 reads KV head 11 // 2 = 5."""
    return 64 * 4, 128 * 4, (11 // (16 // 8)) * 128


read_off = Exercise(
    number="5.1",
    title="Two buffers and one stripe",
    stars=1,
    steps=(
        Step("three numbers", _test_three),
        Step("the bytes of a tile of scores", _test_scores),
        Step("the bytes of the running numerator", _test_numerator),
        Step("the first column that query head 11 reads", _test_column),
    ),
    solution=state_and_stripe,
    wrong={
        "floats_for_bytes": (64, 128, 640),
        "float64": (512, 1024, 640),
        "query_head_for_kv_head": (256, 512, 11 * 128),
        "tile_order": (256, 512, (11 % 8) * 128),
        "buffers_only": (256, 512),
    },
    value=True,
)

# ---- 5.2 -----------------------------------------------------------------------------


def _after(rescale: Callable, state: State, tile_max: float, want: State) -> None:
    """Compare one call with the state that is right, part by part."""
    m, l, acc = state
    with np.errstate(all="ignore"):
        got = rescale(m, l, acc.copy(), tile_max)
    expect(
        isinstance(got, tuple) and len(got) == 3,
        f"the answer is {got!r}; expected a tuple (m, l, acc)",
    )
    for part, name in enumerate(("m", "l", "acc")):
        what = f"{name} after m = {m:g} meets a tile whose max is {tile_max:g}"
        expect_close(got[part], want[part], what, atol=1e-12)


def _row_so_far() -> State:
    """Return the state of the row after its first tile, scores 1 and 3."""
    p = np.exp(np.array([1.0, 3.0]) - 3.0)
    return 3.0, float(p.sum()), p @ np.array([[1.0, 0.0], [0.0, 1.0]])


def _test_first_tile(rescale: Callable) -> None:
    empty = (-np.inf, 0.0, np.zeros(2))
    _after(rescale, empty, 3.0, (3.0, 0.0, np.zeros(2)))


def _test_rise(rescale: Callable) -> None:
    m, l, acc = _row_so_far()
    corr = np.exp(3.0 - 5.0)
    _after(rescale, (m, l, acc), 5.0, (5.0, l * corr, acc * corr))


def _test_no_rise(rescale: Callable) -> None:
    state = _row_so_far()
    _after(rescale, state, 2.0, state)
    _after(rescale, state, 3.0, state)


def _test_high_rise(rescale: Callable) -> None:
    _after(rescale, _row_so_far(), 2000.0, (2000.0, 0.0, np.zeros(2)))


def _test_no_keys(rescale: Callable) -> None:
    empty = (-np.inf, 0.0, np.zeros(2))
    _after(rescale, empty, -np.inf, empty)


def rescale_lines(m: float, l: float, acc: np.ndarray, tile_max: float) -> State:
    """Bring l and acc to the larger max; do nothing where the max does not rise."""
    if tile_max > m:
        corr = np.exp(m - tile_max)
        l *= corr
        acc *= corr
        m = tile_max
    return m, l, acc


def _l_not_rescaled(m: float, l: float, acc: np.ndarray, tile_max: float) -> State:
    new, _, acc = rescale_lines(m, l, acc, tile_max)
    return new, l, acc


def _acc_not_rescaled(m: float, l: float, acc: np.ndarray, tile_max: float) -> State:
    kept = acc.copy()
    m, l, _ = rescale_lines(m, l, acc, tile_max)
    return m, l, kept


def _inverse_rescale(m: float, l: float, acc: np.ndarray, tile_max: float) -> State:
    if tile_max > m:
        corr = np.exp(tile_max - m) if l else 0.0
        l, acc, m = l * corr, acc * corr, tile_max
    return m, l, acc


def _max_replaced_first(m: float, l: float, acc: np.ndarray, tile_max: float) -> State:
    if tile_max > m:
        m = tile_max
        corr = np.exp(m - tile_max)
        l, acc = l * corr, acc * corr
    return m, l, acc


def _max_kept(m: float, l: float, acc: np.ndarray, tile_max: float) -> State:
    _, l, acc = rescale_lines(m, l, acc, tile_max)
    return m, l, acc


def _ge_for_gt(m: float, l: float, acc: np.ndarray, tile_max: float) -> State:
    if tile_max >= m:
        corr = np.exp(m - tile_max)
        l, acc, m = l * corr, acc * corr, tile_max
    return m, l, acc


def _always_the_tile(m: float, l: float, acc: np.ndarray, tile_max: float) -> State:
    corr = np.exp(m - tile_max)
    return tile_max, l * corr, acc * corr


rescale = Exercise(
    number="5.2",
    title="The five lines",
    stars=2,
    steps=(
        Step("the first tile meets an empty state", _test_first_tile),
        Step("a tile that raises the max from 3 to 5", _test_rise),
        Step("a tile that does not raise it changes nothing", _test_no_rise),
        Step("a rise of two thousand leaves zeros, not NaN", _test_high_rise),
        Step("an empty state and a tile without keys", _test_no_keys),
    ),
    solution=rescale_lines,
    wrong={
        "l_not_rescaled": _l_not_rescaled,
        "acc_not_rescaled": _acc_not_rescaled,
        "inverse_rescale": _inverse_rescale,
        "max_replaced_first": _max_replaced_first,
        "max_kept": _max_kept,
        "ge_for_gt": _ge_for_gt,
        "always_the_tile": _always_the_tile,
    },
)

# ---- 5.3 -----------------------------------------------------------------------------


def _smallest(head_dim: int, crossings: int) -> int:
    """Try one row after the other, counting floats of a head of rows * 1000 tokens."""
    rows = 1
    while True:
        n = rows * 1000
        read = (n // rows) * n * 2 * head_dim
        if read <= crossings * n * n:
            return rows
        rows += 1


def _rows(rows: Callable, head_dim: int, crossings: int) -> None:
    got, want = rows(head_dim, crossings), _smallest(head_dim, crossings)
    expect(
        got == want,
        f"for head_dim {head_dim} and {crossings} crossings the answer is {got}; "
        f"counting floats gives {want}",
    )


def _test_usual(rows: Callable) -> None:
    _rows(rows, 128, 8)


def _test_narrow(rows: Callable) -> None:
    _rows(rows, 64, 8)


def _test_crossings(rows: Callable) -> None:
    _rows(rows, 128, 16)


def _test_rounding(rows: Callable) -> None:
    _rows(rows, 128, crossings(TEXT_PASSES))
    _rows(rows, 128, crossings(ENGINE_PASSES))
    _rows(rows, 1, 4)


def rows_to_share(head_dim: int, crossings: int) -> int:
    """Solve 2 * head_dim / rows <= crossings for the smallest whole number of rows."""
    return -(-2 * head_dim // crossings)


def _keys_only(head_dim: int, crossings: int) -> int:
    return -(-head_dim // crossings)


def _bytes_on_one_side(head_dim: int, crossings: int) -> int:
    return -(-8 * head_dim // crossings)


def _rounded_down(head_dim: int, crossings: int) -> int:
    return max(1, 2 * head_dim // crossings)


def _one_tile(head_dim: int, crossings: int) -> int:
    return 32


def _quarter_of_the_width(head_dim: int, crossings: int) -> int:
    return -(-head_dim // 4)


rows = Exercise(
    number="5.3",
    title="What the matrix was good for",
    stars=3,
    steps=(
        Step("head_dim 128 against eight crossings", _test_usual),
        Step("a narrower head needs fewer rows", _test_narrow),
        Step("more crossings of the matrix need fewer rows", _test_crossings),
        Step("the smallest whole number of rows", _test_rounding),
    ),
    solution=rows_to_share,
    wrong={
        "keys_only": _keys_only,
        "bytes_on_one_side": _bytes_on_one_side,
        "rounded_down": _rounded_down,
        "one_tile": _one_tile,
        "quarter_of_the_width": _quarter_of_the_width,
    },
)

EXERCISES = (read_off, rescale, rows)
