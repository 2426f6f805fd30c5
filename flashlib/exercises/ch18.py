"""Exercises on masks, on what a clamp covers, and on rows without keys (chapter 18)."""

from collections.abc import Callable

import numpy as np

from flashlib.exercises.exercise import Exercise, Step, expect, expect_close
from flashlib.row import SCORES, VALUES

LOWEST = np.finfo(np.float32).min
TINY = np.finfo(np.float32).tiny

# ---- 18.1 ----------------------------------------------------------------------------

SIX = ("111111", "001111", "000011", "110000", "010011", "000000")


def _test_six(answer: object) -> None:
    shape = np.shape(answer)
    numbers = shape == (6,) and np.asarray(answer).dtype.kind in "biuf"
    expect(numbers, f"the answer is {answer!r}; expected 6 times the number 0 or 1")


def _test_mask(place: int) -> Callable[[object], None]:
    def test(answer: object) -> None:
        want = SIX[place] in ("000011", "000000")
        says = {True: "NaN, 1", False: "a number, 0"}[want]
        expect(
            answer[place] in (0, 1) and bool(answer[place]) == want,
            f"mask {SIX[place]}: the answer is {answer[place]!r}; the row is {says}",
        )

    return test


def nan_or_not() -> list[int]:
    """Look for two hidden tiles from the start on, and for rows without keys."""
    masks = ["111111", "001111", "000011", "110000", "010011", "000000"]
    return [int(mask.startswith("0000")) for mask in masks]


nans = Exercise(
    number="18.1",
    title="Which rows are lost?",
    stars=1,
    steps=(
        Step("six answers of 0 or 1", _test_six),
        Step("no key hidden", _test_mask(0)),
        Step("the first tile hidden", _test_mask(1)),
        Step("the first two tiles hidden", _test_mask(2)),
        Step("the last two tiles hidden", _test_mask(3)),
        Step("the tile in the middle hidden", _test_mask(4)),
        Step("everything hidden", _test_mask(5)),
    ),
    solution=nan_or_not,
    wrong={
        "any_hidden_tile": [0, 1, 1, 1, 1, 1],
        "only_the_empty_row": [0, 0, 0, 0, 0, 1],
        "two_hidden_tiles_anywhere": [0, 0, 1, 1, 0, 1],
        "the_clamp_saves_all": [0, 0, 0, 0, 0, 0],
        "the_first_tile": [0, 1, 1, 0, 0, 1],
        "strings": ["0", "0", "1", "0", "0", "1"],
    },
    value=True,
)

# ---- 18.2 ----------------------------------------------------------------------------


def _mask(answer: Callable, pos: int, seq: int, slots: int) -> np.ndarray:
    got = np.asarray(answer(pos, seq, slots))
    expect(
        got.shape == (slots, seq),
        f"the mask has shape {got.shape}; expected ({slots}, {seq})",
    )
    return got.astype(int)


def _column(answer: Callable, case: tuple[int, int, int], query: int) -> None:
    got = np.flatnonzero(_mask(answer, *case)[:, query]).tolist()
    want = np.flatnonzero(decode_mask(*case)[:, query]).tolist()
    pos, seq, slots = case
    expect(
        got == want,
        f"{slots} slots, pos {pos}, query {query} of {seq}: slots {got}; "
        f"expected {want}",
    )


def _test_one(answer: Callable) -> None:
    _column(answer, (5, 1, 8), 0)


def _test_first(answer: Callable) -> None:
    _column(answer, (3, 3, 10), 0)


def _test_last(answer: Callable) -> None:
    _column(answer, (3, 3, 10), 2)


def _test_full(answer: Callable) -> None:
    for query in range(4):
        _column(answer, (12, 4, 16), query)


def _test_empty(answer: Callable) -> None:
    for query in range(2):
        _column(answer, (0, 2, 8), query)


def decode_mask(pos: int, seq: int, slots: int) -> np.ndarray:
    """Cut the cache at pos; put a triangle of the active tokens into the last slots."""
    mask = np.zeros((slots, seq), bool)
    mask[:pos] = True
    mask[slots - seq :] = np.triu(np.ones((seq, seq), bool))
    return mask


def _causal_by_position(pos: int, seq: int, slots: int) -> np.ndarray:
    return np.arange(slots)[:, None] < pos + np.arange(seq)


def _all_active(pos: int, seq: int, slots: int) -> np.ndarray:
    mask = decode_mask(pos, seq, slots)
    mask[slots - seq :] = True
    return mask


def _lower(pos: int, seq: int, slots: int) -> np.ndarray:
    mask = decode_mask(pos, seq, slots)
    mask[slots - seq :] = np.tri(seq, dtype=bool)
    return mask


def _without_self(pos: int, seq: int, slots: int) -> np.ndarray:
    mask = decode_mask(pos, seq, slots)
    mask[slots - seq :] &= ~np.eye(seq, dtype=bool)
    return mask


by_slot = Exercise(
    number="18.2",
    title="Slot by slot",
    stars=2,
    steps=(
        Step("one query: the cache and itself", _test_one),
        Step("the first of three queries", _test_first),
        Step("the last of three queries", _test_last),
        Step("a cache without a free slot", _test_full),
        Step("an empty cache", _test_empty),
    ),
    solution=decode_mask,
    wrong={
        "only_the_cache": lambda pos, seq, slots: (
            np.arange(slots)[:, None] < np.full(seq, pos)
        ),
        "active_tokens_at_pos": _causal_by_position,
        "active_tokens_from_pos": lambda pos, seq, slots: (
            np.arange(slots)[:, None] <= pos + np.arange(seq)
        ),
        "no_triangle": _all_active,
        "triangle_of_the_other_side": _lower,
        "not_itself": _without_self,
        "queries_first": lambda pos, seq, slots: decode_mask(pos, seq, slots).T,
    },
)

# ---- 18.3 ----------------------------------------------------------------------------


def _row(answer: Callable, s, mask, v, tile: int = 2) -> np.ndarray:
    arrays = np.float32(s), np.asarray(mask, bool), np.float32(v)
    with np.errstate(all="ignore"):
        return np.asarray(answer(*arrays, tile), np.float64)


def _right(s, mask, v) -> np.ndarray:
    """Attend to what is left when the hidden keys are taken out."""
    mask = np.asarray(mask, bool)
    s, v = np.float64(s)[mask], np.float64(v)[mask]
    if not len(s):
        return np.zeros(v.shape[1])
    p = np.exp(s - s.max())
    return p @ v / p.sum()


def _cases(answer: Callable, masks: tuple[str, ...], tile: int = 2) -> None:
    for bits in masks:
        mask = [bit == "1" for bit in bits]
        got = _row(answer, SCORES, mask, VALUES, tile)
        what = f"mask {bits}, tiles of {tile}: the output"
        expect_close(got, _right(SCORES, mask, VALUES), what, 1e-5, 1e-5)


def _test_plain(answer: Callable) -> None:
    _cases(answer, ("111111", "111011", "101010", "001111"))


def _test_leading(answer: Callable) -> None:
    _cases(answer, ("000011", "000001"))
    _cases(answer, ("000011", "000001"), 1)


def _test_nothing(answer: Callable) -> None:
    _cases(answer, ("000000",))
    _cases(answer, ("000000",), 6)


def _test_low(answer: Callable) -> None:
    s = np.array([-6e4, -7e4, LOWEST, LOWEST], np.float32)
    for bits in ("1100", "0010", "0001"):
        mask = [bit == "1" for bit in bits]
        got = _row(answer, s, mask, VALUES[:4])
        what = f"scores -6e4, -7e4 and twice the lowest float, mask {bits}: the output"
        expect_close(got, _right(s, mask, VALUES[:4]), what, 1e-5, 1e-5)


def _test_garbage(answer: Callable) -> None:
    mask = np.array([1, 0, 1, 1, 1, 0], bool)
    s, v = SCORES.copy(), VALUES.copy()
    s[~mask], v[~mask] = np.nan, np.inf
    got = _row(answer, s, mask, v)
    want = _right(SCORES, mask, VALUES)
    expect_close(got, want, "NaN in hidden scores, inf in hidden values: it", 1e-5)


def _test_loud(answer: Callable) -> None:
    v = VALUES.copy()
    v[3, 0] = np.nan
    got = _row(answer, SCORES, np.ones(6, bool), v)
    expect(
        np.isnan(got[0]) and np.isfinite(got[1]),
        f"NaN in value 3, which is attended: the output is {got}; expected NaN in "
        "component 0 only",
    )


def total_decode(s: np.ndarray, mask: np.ndarray, v: np.ndarray, tile: int):
    """Clamp the running max itself, the sum, and drop hidden values by selection."""
    floats = np.finfo(np.float32)
    s, v = np.where(mask, s, -np.inf), np.where(mask[:, None], v, 0)
    m, l, acc = floats.min, np.float32(0), np.zeros_like(v[0])
    for start in range(0, len(s), tile):
        part = slice(start, start + tile)
        new = max(m, s[part].max())
        p, corr = np.exp(s[part] - new), np.exp(m - new)
        m, l, acc = new, l * corr + p.sum(), acc * corr + p @ v[part]
    return acc / max(l, floats.tiny)


def _published(s, mask, v, tile, floor=-np.inf, tiny=0, fill=-np.inf, clean=True):
    """Walk as the published kernel does, with guards as options."""
    s = np.where(mask, s, fill).astype(np.float32)
    v = np.where(mask[:, None], v, 0) if clean else v
    m, l, acc = np.float32(-np.inf), np.float32(0), np.zeros_like(v[0])
    for start in range(0, len(s), tile):
        part = slice(start, start + tile)
        new = max(m, s[part].max(), floor)
        corr = np.exp(m - new) if start else np.float32(1)
        p = np.exp(s[part] - max(new, LOWEST))
        m, l, acc = new, l * corr + p.sum(), acc * corr + p @ v[part]
    return acc * (1 / np.maximum(l, np.float32(tiny)))


total = Exercise(
    number="18.3",
    title="Make decode total",
    stars=3,
    steps=(
        Step("rows that the published steps get right", _test_plain),
        Step("two hidden tiles in front", _test_leading),
        Step("a row without keys is 0", _test_nothing),
        Step("low scores are ordinary numbers", _test_low),
        Step("hidden garbage stays hidden", _test_garbage),
        Step("attended garbage shows", _test_loud),
    ),
    solution=total_decode,
    wrong={
        "as_published": _published,
        "running_max_only": lambda s, mask, v, tile: _published(
            s, mask, v, tile, floor=LOWEST
        ),
        "lowest_float_for_hidden": lambda s, mask, v, tile: _published(
            s, mask, v, tile, floor=LOWEST, tiny=TINY, fill=LOWEST
        ),
        "floor_at_minus_ten_thousand": lambda s, mask, v, tile: _published(
            s, mask, v, tile, floor=np.float32(-1e4), tiny=TINY
        ),
        "hidden_values_multiplied": lambda s, mask, v, tile: _published(
            s, mask, v, tile, floor=LOWEST, tiny=TINY, clean=False
        ),
        "every_nan_to_zero": lambda s, mask, v, tile: np.nan_to_num(
            total_decode(s, mask, v, tile)
        ),
    },
    right={"without_a_walk": lambda s, mask, v, tile: _right(s, mask, v)},
)

EXERCISES = (nans, by_slot, total)
