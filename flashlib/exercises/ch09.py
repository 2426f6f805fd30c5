"""Exercises on register tiles, lanes and tile sizes (chapter 9)."""

from collections.abc import Callable, Sequence

import numpy as np

from flashlib.exercises.exercise import (
    Exercise,
    Step,
    expect,
    expect_close,
    expect_numbers,
)
from flashlib.experiments.shapes import loads_per_fma, tile_bytes
from flashlib.online_softmax import OnlineSoftmax
from flashlib.row import SCORES

# ---- 9.1 -----------------------------------------------------------------------------

SHAPES = ((1, 1), (2, 2), (4, 3), (6, 2), (8, 3))


def _five(answer: Sequence) -> None:
    expect(len(answer) == 5, f"the answer has {len(answer)} entries; expected 5")


def _one_by_one(answer: Sequence) -> None:
    expect_close(answer[0], float(loads_per_fma(1, 1)), "a tile of 1 row and 1 vector")


def _all_shapes(answer: Sequence) -> None:
    for got, shape in zip(answer, SHAPES, strict=True):
        want = float(loads_per_fma(*shape))
        expect_close(got, want, f"{shape[0]} rows and {shape[1]} vectors", atol=0.005)


def loads() -> list[float]:
    """Load rows + vectors once, use each with each: rows * vectors products."""
    shapes = [(1, 1), (2, 2), (4, 3), (6, 2), (8, 3)]
    return [(rows + vectors) / (rows * vectors) for rows, vectors in shapes]


register_loads = Exercise(
    number="9.1",
    title="Loads for one product",
    stars=1,
    steps=(
        Step("five numbers", _five),
        Step("without a tile, two loads for each product", _one_by_one),
        Step("all five shapes", _all_shapes),
    ),
    solution=loads,
    wrong={
        "the_area": [1, 4, 12, 12, 24],
        "the_rim": [2, 4, 7, 8, 11],
        "products_per_load": [1 / 2, 1, 12 / 7, 3 / 2, 24 / 11],
        "rows_only": [1, 1 / 2, 1 / 3, 1 / 2, 1 / 3],
        "three": [2, 1, 7 / 12],
    },
    value=True,
)

# ---- 9.2 -----------------------------------------------------------------------------


def _lanes_state(lanes: int, width: int) -> tuple[np.ndarray, ...]:
    return np.full(lanes, -np.inf), np.zeros(lanes), np.zeros((width, lanes))


def _walked(step: Callable, s: np.ndarray, v: np.ndarray, tile: int) -> tuple:
    state = _lanes_state(s.shape[1], v.shape[1])
    for first in range(0, len(s), tile):
        some = slice(first, first + tile)
        with np.errstate(all="ignore"):
            state = step(*state, s[some], v[some])
        expect(
            isinstance(state, (tuple, list)) and len(state) == 3,
            f"it returned {state!r}; expected the 3 parts m, l, acc",
        )
    return tuple(np.asarray(part) for part in state)


def _compare(
    step: Callable, s: np.ndarray, v: np.ndarray, tile: int, what: str
) -> None:
    m, l, acc = _walked(step, s, v, tile)
    want = OnlineSoftmax.start(v.shape[1], np.float64, (s.shape[1],)).update(s.T, v)
    for got, right, name in (
        (m, want.m, "m"),
        (l, want.l, "l"),
        (acc, want.acc.T, "acc"),
    ):
        expect_close(got, right, f"{name} of {what}", rtol=1e-9)


def _numbers(keys: int, lanes: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(9)
    return 3 * rng.standard_normal((keys, lanes)), rng.standard_normal((keys, 3))


def _one_lane(step: Callable) -> None:
    _compare(step, SCORES[:, None], np.eye(6), 6, "the running row in one tile")


def _one_lane_tiles(step: Callable) -> None:
    _compare(step, SCORES[:, None], np.eye(6), 2, "the running row in tiles of 2")


def _many_lanes(step: Callable) -> None:
    _compare(step, *_numbers(24, 5), 4, "24 keys and 5 lanes in tiles of 4")


def _hidden(step: Callable) -> None:
    s, v = _numbers(8, 3)
    s[:4, 1] = s[:, 2] = -np.inf
    _compare(step, s, v, 4, "a lane that sees no key of the first tile, or none at all")


def lanes_step(
    m: np.ndarray, l: np.ndarray, acc: np.ndarray, s: np.ndarray, v: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Take all lanes past one tile: every line is elementwise over the lanes."""
    m_new = np.maximum(m, s.max(axis=0))
    base = np.where(m_new > -np.inf, m_new, 0)
    corr, p = np.exp(m - base), np.exp(s - base)
    return m_new, l * corr + p.sum(axis=0), acc * corr + v.T @ p


def _one_max_for_all(m, l, acc, s, v):
    m_new = np.maximum(m, s.max())
    corr, p = np.exp(m - m_new), np.exp(s - m_new)
    return m_new, l * corr + p.sum(axis=0), acc * corr + v.T @ p


def _no_guard(m, l, acc, s, v):
    m_new = np.maximum(m, s.max(axis=0))
    corr, p = np.exp(m - m_new), np.exp(s - m_new)
    return m_new, l * corr + p.sum(axis=0), acc * corr + v.T @ p


def _no_rescale(m, l, acc, s, v):
    m_new, _, _ = lanes_step(m, l, acc, s, v)
    p = np.exp(s - m_new)
    return m_new, l + p.sum(axis=0), acc + v.T @ p


def _sum_over_all(m, l, acc, s, v):
    m_new, _, acc_new = lanes_step(m, l, acc, s, v)
    return m_new, l * np.exp(m - m_new) + np.exp(s - m_new).sum(), acc_new


transposed_step = Exercise(
    number="9.2",
    title="A tile of lanes",
    stars=2,
    steps=(
        Step("one lane, one tile: the running row", _one_lane),
        Step("one lane, three tiles", _one_lane_tiles),
        Step("five lanes, six tiles", _many_lanes),
        Step("a lane may have seen nothing yet", _hidden),
    ),
    solution=lanes_step,
    wrong={
        "one_max_for_all": _one_max_for_all,
        "no_guard": _no_guard,
        "no_rescale": _no_rescale,
        "sum_over_all": _sum_over_all,
    },
)

# ---- 9.3 -----------------------------------------------------------------------------

MACHINES = {
    "32 KiB and 512 KiB": (32 * 1024, 512 * 1024, 128, 24),
    "48 KiB and 2 MiB": (48 * 1024, 2048 * 1024, 128, 48),
    "32 KiB and 256 KiB, heads of 64": (32 * 1024, 256 * 1024, 64, 24),
    "64 KiB and 1 MiB, heads of 256": (64 * 1024, 1024 * 1024, 256, 24),
}


def _pair(pick: Callable, machine: tuple) -> tuple[int, int]:
    answer = pick(*machine)
    expect_numbers(answer, (2,), "the tile and the blocks")
    tile, blocks = map(float, answer)
    expect(
        tile.is_integer() and blocks.is_integer(),
        f"tile and blocks are {answer!r}; expected whole numbers",
    )
    return int(tile), int(blocks)


def _powers(pick: Callable) -> None:
    for what, machine in MACHINES.items():
        tile, _ = _pair(pick, machine)
        expect(
            tile > 0 and tile & (tile - 1) == 0,
            f"on {what} the tile is {tile}; expected a power of 2",
        )


def _near_fits(pick: Callable) -> None:
    for what, machine in MACHINES.items():
        l1, _, head_dim, lanes = machine
        tile, _ = _pair(pick, machine)
        now, more = (tile_bytes(lanes, t, head_dim).near for t in (tile, 2 * tile))
        expect(
            now <= 0.75 * l1,
            f"on {what} a tile of {tile} keys keeps {now:,} bytes near; three "
            f"quarters of the first level are {0.75 * l1:,.0f}",
        )
        expect(
            more > 0.75 * l1,
            f"on {what} the tile is {tile}, and one of {2 * tile} would still fit",
        )


def _far_fits(pick: Callable) -> None:
    for what, machine in MACHINES.items():
        _, l2, head_dim, lanes = machine
        tile, blocks = _pair(pick, machine)
        expect(blocks >= 1, f"on {what} there are {blocks} blocks; expected at least 1")
        now, more = (
            tile_bytes(lanes, tile, head_dim, n).far for n in (blocks, blocks + 1)
        )
        expect(
            blocks == 1 or now <= 0.5 * l2,
            f"on {what} {blocks} blocks touch {now:,} bytes; half of the second "
            f"level is {0.5 * l2:,.0f}",
        )
        expect(
            more > 0.5 * l2,
            f"on {what} there are {blocks} blocks, and one more would still fit",
        )


def pick_tiles(l1: int, l2: int, head_dim: int, lanes: int) -> tuple[int, int]:
    """Fill three quarters of the first level, then half of the second."""
    tile = 1
    while 4 * (2 * tile + head_dim) * lanes <= 0.75 * l1:
        tile *= 2
    shared = 4 * 2 * tile * head_dim
    blocks = (l2 // 2 - shared) // (4 * 2 * head_dim * lanes)
    return tile, max(1, blocks)


def _keys_in_first_level(l1, l2, head_dim, lanes):
    tile = 1
    while 4 * 2 * 2 * tile * head_dim <= 0.75 * l1:
        tile *= 2
    return tile, 1


def _forgets_values(l1, l2, head_dim, lanes):
    tile, _ = pick_tiles(l1, l2, head_dim, lanes)
    return tile, (l2 // 2 - 4 * tile * head_dim) // (4 * head_dim * lanes)


tile_sizes = Exercise(
    number="9.3",
    title="Tile sizes from cache sizes",
    stars=3,
    steps=(
        Step("the tile is a power of 2", _powers),
        Step("scores and queries fill the first level, and fit", _near_fits),
        Step("keys, values and blocks fill the second level, and fit", _far_fits),
    ),
    solution=pick_tiles,
    wrong={
        "always_64_and_4": lambda l1, l2, head_dim, lanes: (64, 4),
        "keys_in_first_level": _keys_in_first_level,
        "forgets_values": _forgets_values,
        "numbers_for_bytes": lambda l1, l2, head_dim, lanes: pick_tiles(
            4 * l1, 4 * l2, head_dim, lanes
        ),
        "not_a_power": lambda l1, l2, head_dim, lanes: (96, 4),
    },
    right={
        "an_array": lambda l1, l2, head_dim, lanes: np.array(
            pick_tiles(l1, l2, head_dim, lanes)
        ),
    },
)

EXERCISES = (register_loads, transposed_step, tile_sizes)
