"""Exercises on the tiled loop, its state and what it reads (chapter 5)."""

from collections.abc import Callable

import numpy as np

from flashlib.exercises.answers import ch05 as answers
from flashlib.exercises.exercise import (
    Exercise,
    Step,
    WrongStepError,
    expect,
    expect_close,
    expect_numbers,
)
from flashlib.exercises.strip import Strip
from flashlib.exercises.wrong_loops import WRONG_LOOPS
from flashlib.row import SCORES, VALUES
from flashlib.traffic import ENGINE_PASSES, TEXT_PASSES, crossings

# ---- 5.1 -----------------------------------------------------------------------------


def _test_three(answer: object) -> None:
    expect_numbers(answer, (3,), "bytes, bytes and a column")


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
    right={"an_array": np.array([256, 512, 640])},
)

# ---- 5.2 -----------------------------------------------------------------------------


def _answer(
    attend_row: Callable,
    s: np.ndarray,
    v: np.ndarray,
    tile: int,
    what: str,
    scale: float = 0.5,
) -> list[Strip]:
    """Ask for a row with the scores `s` and compare it with softmax in one go."""
    q, turns = np.array([4.0, 0.0]), []
    k = np.column_stack([s / (q[0] * scale), np.ones(len(s))])
    strips = [Strip("k", k, tile, turns), Strip("v", v, tile, turns)]
    with np.errstate(all="ignore"):
        got = attend_row(q, *strips, scale, tile)
    p = np.exp(s - s.max())
    try:
        expect_close(got, p @ v / p.sum(), f"{what}: the answer", atol=1e-6)
    except WrongStepError as wrong:
        beyond = next((strip.beyond for strip in strips if strip.beyond), "")
        raise WrongStepError(f"{wrong}{beyond}") from None
    return strips


def _test_row(*cases: tuple[int, int]) -> Callable[[Callable], None]:
    """Return a test of the first keys of the row of the book, tile by tile."""

    def test(attend_row: Callable) -> None:
        for n, tile in cases:
            what = f"scores {_shown(SCORES[:n])} in tiles of {tile}"
            _answer(attend_row, SCORES[:n], VALUES[:n], tile, what)

    return test


def _test_scale(attend_row: Callable) -> None:
    for scale in (1.0, 0.125):
        what = f"scale {scale:g}"
        _answer(attend_row, SCORES, VALUES, 2, what, scale)


def _test_far_scores(attend_row: Callable) -> None:
    for shift in (2000.0, -2000.0):
        s = SCORES[:4] + np.array([0, 0, shift, shift])
        _answer(attend_row, s, VALUES[:4], 2, f"scores {_shown(s)} in tiles of 2")
        s = SCORES + shift
        _answer(attend_row, s, VALUES, 2, f"scores {_shown(s)} in tiles of 2")


def _test_read_once(attend_row: Callable) -> None:
    rng = np.random.default_rng(5)
    for n, tile in ((63, 64), (64, 64), (65, 64), (130, 64), (100, 7), (9, 1)):
        s, v = rng.normal(0, 3, n), rng.normal(size=(n, 3))
        what = f"{n} random keys in tiles of {tile}"
        for strip in _answer(attend_row, s, v, tile, what):
            for j, count in enumerate(strip.reads[:n]):
                expect(
                    count == 1,
                    f"{what}: row {j} of {strip.name} is read {count} times; "
                    "expected once",
                )


def _test_by_tiles(attend_row: Callable) -> None:
    for n, tile in ((6, 2), (130, 64), (9, 4)):
        s, v = np.sin(np.arange(n)), np.cos(np.arange(n))[:, None]
        what = f"{n} keys in tiles of {tile}"
        turns = _answer(attend_row, s, v, tile, what)[0].turns
        most = 2 * -(-n // tile)
        expect(
            len(turns) <= most,
            f"{what}: you turn from keys to values and back {len(turns)} times; one "
            f"turn each per tile makes {most}",
        )


def _shown(scores: np.ndarray) -> str:
    return ", ".join(f"{x:g}" for x in scores)


def attend_row(q, k, v, scale, tile):
    """Wait inside a tile, repair between tiles, divide once."""
    m, l, acc = -np.inf, 0.0, np.zeros(v.shape[1])
    for start in range(0, len(k), tile):
        stop = min(start + tile, len(k))
        s = scale * (k[start:stop] @ q)
        m_tile = s.max()
        if m_tile > m:
            corr = np.exp(m - m_tile)
            l *= corr
            acc *= corr
            m = m_tile
        p = np.exp(s - m)
        l += p.sum()
        acc += p @ v[start:stop]
    return acc / l


loop = Exercise(
    number="5.2",
    title="The loop from memory",
    stars=2,
    steps=(
        Step("the first tile meets an empty state", _test_row((2, 2))),
        Step("a tile that raises the max from 3 to 5", _test_row((4, 2))),
        Step("a tile that does not raise it", _test_row((6, 2), (6, 3))),
        Step("a last tile that is shorter", _test_row((5, 2), (1, 4), (6, 4))),
        Step("other scales", _test_scale),
        Step("maxima two thousand apart, and far from zero", _test_far_scores),
        Step("each key and each value is read once", _test_read_once),
        Step("the keys of a tile come before its values", _test_by_tiles),
    ),
    solution=attend_row,
    wrong=WRONG_LOOPS,
    right=answers.LOOP_RIGHT,
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
    title="How many rows have to share",
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
        **answers.ROWS_WRONG,
    },
    right=answers.ROWS_RIGHT,
)

EXERCISES = (read_off, loop, rows)
