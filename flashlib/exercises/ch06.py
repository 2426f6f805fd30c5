"""Exercises on loop bounds and what they skip (chapter 6)."""

from collections.abc import Callable
from itertools import product

import numpy as np

from flashlib.exercises.exercise import Exercise, Step, expect, expect_numbers


def _seen(seq_q: int, seq_k: int) -> np.ndarray:
    """Return the causal mask, [seq_q, seq_k], last query on last key."""
    return np.tri(seq_q, seq_k, seq_k - seq_q, dtype=bool)


# ---- 6.1 -----------------------------------------------------------------------------

SHAPES = ((6, 6), (3, 6), (8, 6))


def _test_three(answer: object) -> None:
    expect_numbers(answer, (3,), "three counts")


def _counted(place: int) -> Callable[[object], None]:
    """Return the test of one count."""
    seq_q, seq_k = SHAPES[place]

    def test(answer: object) -> None:
        per_row = _seen(seq_q, seq_k).sum(axis=1)
        expect(
            answer[place] == per_row.sum(),
            f"{seq_q} queries on {seq_k} keys: the answer is {answer[place]}; row by "
            f"row {' + '.join(map(str, per_row))} = {per_row.sum()}",
        )

    return test


def visited_pairs() -> tuple[int, int, int]:
    """Add up the rows; the last query always sees the last key."""
    square = 1 + 2 + 3 + 4 + 5 + 6
    three_new_queries = 4 + 5 + 6
    two_rows_without_keys = 0 + 0 + square
    return square, three_new_queries, two_rows_without_keys


read_off = Exercise(
    number="6.1",
    title="Count the visited pairs",
    stars=1,
    steps=(
        Step("three counts", _test_three),
        Step("six queries on six keys", _counted(0)),
        Step("three queries on six keys", _counted(1)),
        Step("eight queries on six keys", _counted(2)),
    ),
    solution=visited_pairs,
    wrong={
        "no_mask": (36, 18, 48),
        "without_self": (15, 12, 15),
        "top_left": (21, 6, 33),
        "half_exactly": (18, 9, 24),
        "mean_of_the_ends": (21, 15, 28),
    },
    value=True,
    right={"an_array": np.array([21, 15, 21])},
)

# ---- 6.2 -----------------------------------------------------------------------------


def _bounds(
    kv_end: Callable, seq_q: int, seq_k: int, causal: bool, what: str = ""
) -> None:
    seen = _seen(seq_q, seq_k) if causal else np.ones((seq_q, seq_k), bool)
    for i, want in enumerate(seen.sum(axis=1)):
        got = kv_end(i, seq_q, seq_k, causal)
        expect(
            got == want,
            f"kv_end({i}, {seq_q}, {seq_k}, causal={causal}) is {got}; "
            f"row {i} attends to {want} {'key' if want == 1 else 'keys'}{what}",
        )


def _test_square(kv_end: Callable) -> None:
    _bounds(kv_end, 6, 6, True)


def _test_open(kv_end: Callable) -> None:
    _bounds(kv_end, 6, 6, False)
    _bounds(kv_end, 3, 6, False)


def _test_cache(kv_end: Callable) -> None:
    _bounds(kv_end, 3, 6, True, ", and the last query sees the last key")
    _bounds(kv_end, 1, 6, True, ", and the last query sees the last key")


def _test_empty_rows(kv_end: Callable) -> None:
    _bounds(kv_end, 8, 6, True, "; a bound is a count and never negative")


def _test_every_shape(kv_end: Callable) -> None:
    for seq_q, seq_k in product(range(1, 9), repeat=2):
        for causal in (False, True):
            _bounds(kv_end, seq_q, seq_k, causal)


def causal_end(i: int, seq_q: int, seq_k: int, causal: bool) -> int:
    """Stop after the key that row i sits on; a row before the first key sees none."""
    if not causal:
        return seq_k
    return max(0, i + 1 + seq_k - seq_q)


def _always_causal(i: int, seq_q: int, seq_k: int, causal: bool) -> int:
    return max(0, i + 1 + seq_k - seq_q)


def _top_left(i: int, seq_q: int, seq_k: int, causal: bool) -> int:
    return min(i + 1, seq_k) if causal else seq_k


def _off_by_one(i: int, seq_q: int, seq_k: int, causal: bool) -> int:
    return max(0, i + seq_k - seq_q) if causal else seq_k


def _negative(i: int, seq_q: int, seq_k: int, causal: bool) -> int:
    return i + 1 + seq_k - seq_q if causal else seq_k


def _offset_backwards(i: int, seq_q: int, seq_k: int, causal: bool) -> int:
    return min(seq_k, max(0, i + 1 + seq_q - seq_k)) if causal else seq_k


def _square_only(i: int, seq_q: int, seq_k: int, causal: bool) -> int:
    return min(i + 1 + max(0, seq_k - seq_q), seq_k) if causal else seq_k


kv_end = Exercise(
    number="6.2",
    title="One bound for all",
    stars=2,
    steps=(
        Step("six queries on six keys, causal", _test_square),
        Step("without the mask every key is visited", _test_open),
        Step("fewer queries than keys, causal", _test_cache),
        Step("more queries than keys: some rows are empty", _test_empty_rows),
        Step("every shape up to eight by eight", _test_every_shape),
    ),
    solution=causal_end,
    wrong={
        "always_causal": _always_causal,
        "top_left": _top_left,
        "off_by_one": _off_by_one,
        "negative": _negative,
        "offset_backwards": _offset_backwards,
        "square_only": _square_only,
        "causal_when_keys_run_out": lambda i, seq_q, seq_k, causal: causal_end(
            i, seq_q, seq_k, causal or seq_q > seq_k
        ),
        "distance_for_offset": lambda i, seq_q, seq_k, causal: (
            min(seq_k, i + 1 + abs(seq_k - seq_q)) if causal else seq_k
        ),
    },
    right={
        "counts_keys": lambda i, seq_q, seq_k, causal: sum(
            not causal or j - seq_k <= i - seq_q for j in range(seq_k)
        ),
        "clipped": lambda i, seq_q, seq_k, causal: np.clip(
            i + 1 + seq_k - seq_q if causal else seq_k, 0, seq_k
        ),
    },
)

# ---- 6.3 -----------------------------------------------------------------------------


def _count_kinds(seq: int, tile: int) -> tuple[int, int, int]:
    """Cut the mask into tiles and look into each."""
    seen, counts = _seen(seq, seq), [0, 0, 0]
    for a in range(0, seq, tile):
        for b in range(0, seq, tile):
            block = seen[a : a + tile, b : b + tile]
            counts[0 if block.all() else 1 if block.any() else 2] += 1
    return tuple(counts)


def _kinds(tile_kinds: Callable, seq: int, tile: int) -> None:
    got, want = tile_kinds(seq, tile), _count_kinds(seq, tile)
    expect(
        np.shape(got) == (3,) and tuple(got) == want,
        f"{seq} tokens in tiles of {tile} give {got}; looking into each tile gives "
        f"{want[0]} live, {want[1]} partial, {want[2]} dead",
    )


def _test_row(tile_kinds: Callable) -> None:
    _kinds(tile_kinds, 6, 2)


def _test_long(tile_kinds: Callable) -> None:
    _kinds(tile_kinds, 511, 64)


def _test_one_tile(tile_kinds: Callable) -> None:
    _kinds(tile_kinds, 64, 64)
    _kinds(tile_kinds, 5, 64)


def _test_single_tokens(tile_kinds: Callable) -> None:
    _kinds(tile_kinds, 6, 1)


def _test_last_token_alone(tile_kinds: Callable) -> None:
    _kinds(tile_kinds, 65, 64)
    _kinds(tile_kinds, 7, 3)


def _test_every_size(tile_kinds: Callable) -> None:
    for seq in range(1, 18):
        for tile in (1, 2, 3, 5, 64):
            _kinds(tile_kinds, seq, tile)


def tile_kinds(seq: int, tile: int) -> tuple[int, int, int]:
    """Count live, partial and dead tiles; only the diagonal can be partial.

    A tile on the diagonal hides a pair unless it is one token wide.
    """
    n_tiles = -(-seq // tile)
    off_diagonal = n_tiles * (n_tiles - 1) // 2
    one_token = n_tiles if tile == 1 else int(seq % tile == 1)
    return off_diagonal + one_token, n_tiles - one_token, off_diagonal


def _whole_tiles_only(seq: int, tile: int) -> tuple[int, int, int]:
    n_tiles = seq // tile
    return n_tiles * (n_tiles - 1) // 2, n_tiles, n_tiles * (n_tiles - 1) // 2


def _diagonal_always_partial(seq: int, tile: int) -> tuple[int, int, int]:
    n_tiles = -(-seq // tile)
    return n_tiles * (n_tiles - 1) // 2, n_tiles, n_tiles * (n_tiles - 1) // 2


def _diagonal_live(seq: int, tile: int) -> tuple[int, int, int]:
    n_tiles = -(-seq // tile)
    return n_tiles * (n_tiles + 1) // 2, 0, n_tiles * (n_tiles - 1) // 2


def _pairs(seq: int, tile: int) -> tuple[int, int, int]:
    return seq * (seq - 1) // 2, seq, seq * (seq - 1) // 2


def _last_token_forgotten(seq: int, tile: int) -> tuple[int, int, int]:
    if tile == 1:
        return tile_kinds(seq, 1)
    return _diagonal_always_partial(seq, tile)


kinds = Exercise(
    number="6.3",
    title="Live, partial, dead",
    stars=3,
    steps=(
        Step("six tokens in tiles of two", _test_row),
        Step("511 tokens in tiles of 64", _test_long),
        Step("one tile holds everything", _test_one_tile),
        Step("tiles of one token", _test_single_tokens),
        Step("a last tile of one token", _test_last_token_alone),
        Step("one to seventeen tokens in tiles of all sizes", _test_every_size),
    ),
    solution=tile_kinds,
    wrong={
        "whole_tiles_only": _whole_tiles_only,
        "diagonal_always_partial": _diagonal_always_partial,
        "diagonal_live": _diagonal_live,
        "pairs": _pairs,
        "last_token_forgotten": _last_token_forgotten,
        "only_token_forgotten": lambda seq, tile: (
            (0, 1, 0) if seq == 1 < tile else tile_kinds(seq, tile)
        ),
        "single_tile_partial": lambda seq, tile: (
            (0, 1, 0) if seq <= tile else tile_kinds(seq, tile)
        ),
    },
    right={
        "looks_into_each_tile": _count_kinds,
        "an_array": lambda seq, tile: np.array(tile_kinds(seq, tile)),
    },
)

EXERCISES = (read_off, kv_end, kinds)
