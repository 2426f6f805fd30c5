"""Exercises on the bytes of score matrices (chapter 2)."""

import math
from collections.abc import Callable

import numpy as np

from flashlib.exercises.exercise import Exercise, Step, expect, expect_numbers
from flashlib.traffic import TEXT_PASSES, Geometry, crossings, tensor_bytes

# --- 2.1 ------------------------------------------------------------------------

TOKENS, HEADS, LAYERS = 1000, 32, 40


def _three_numbers(answer: object) -> None:
    expect_numbers(answer, (3,), "bytes of one, of all, and bytes that move")


def _number_step(claim: str, place: int, right: float, why: str) -> Step:
    def test(answer: list) -> None:
        expect(
            math.isclose(answer[place], right, rel_tol=1e-3),
            f"you said {answer[place]:,}; expected {right:,}: {why}",
        )

    return Step(claim, test)


def three_counts_solution() -> list[int]:
    """Count one matrix, one per head and layer, and each crossing of all of them."""
    one = 4 * 1000**2  # bytes of one matrix
    total = one * 32 * 40  # one matrix per head and layer
    return [one, total, 6 * total]  # 1 + 2 + 2 + 1 crossings


three_counts = Exercise(
    "2.1",
    "Three counts",
    1,
    (
        Step("three numbers", _three_numbers),
        _number_step("bytes of one matrix", 0, 4 * TOKENS**2, "4 n^2"),
        _number_step(
            "bytes of all matrices",
            1,
            4 * TOKENS**2 * HEADS * LAYERS,
            "one matrix per head and layer",
        ),
        _number_step(
            "bytes that move",
            2,
            4 * TOKENS**2 * HEADS * LAYERS * crossings(TEXT_PASSES),
            "each rewrite is one read and one write",
        ),
    ),
    three_counts_solution,
    {
        "floats for bytes": [10**6, 1.28e9, 7.68e9],
        "heads forgotten": [4 * 10**6, 1.6e8, 9.6e8],
        "layers forgotten": [4 * 10**6, 1.28e8, 7.68e8],
        "four crossings": [4 * 10**6, 5.12e9, 20.48e9],
        "footprint for traffic": [4 * 10**6, 5.12e9, 5.12e9],
        "eleven crossings": [4 * 10**6, 5.12e9, 56.32e9],
        "two numbers": [4 * 10**6, 5.12e9],
        "in words": ["4 MB", "5.12 GB", "30.72 GB"],
    },
    value=True,
    right={
        "an array": np.array([4e6, 5.12e9, 30.72e9]),
        "a tuple": (4 * 10**6, 5_120_000_000, 30_720_000_000),
    },
)

# --- 2.2 ------------------------------------------------------------------------


def _leaves_at(first_outside: Callable, nbytes: int, itemsize: int) -> None:
    n = first_outside(nbytes, itemsize)
    said = f"a cache of {nbytes:,} B and numbers of {itemsize} B: you return {n}"
    expect(n == int(n) and n > 0, f"{said}; expected a whole number of tokens")
    size, before = itemsize * int(n) ** 2, itemsize * (int(n) - 1) ** 2
    expect(
        size > nbytes,
        f"{said}, and {itemsize} * {n}^2 = {size:,} B still fits",
    )
    expect(
        before <= nbytes,
        f"{said}, but {itemsize} * {int(n) - 1}^2 = {before:,} B does not fit either; "
        "expected the first",
    )


def _leaves_step(claim: str, *cases: tuple[int, int]) -> Step:
    def test(first_outside: Callable) -> None:
        for nbytes, itemsize in cases:
            _leaves_at(first_outside, nbytes, itemsize)

    return Step(claim, test)


def first_outside_solution(cache_bytes: int, itemsize: int) -> int:
    """Add one to the whole root of the count of numbers that fit."""
    return math.isqrt(cache_bytes // itemsize) + 1


first_outside = Exercise(
    "2.2",
    "Which n leaves the cache?",
    2,
    (
        _leaves_step("a cache of 500 kB in float32", (500_000, 4)),
        _leaves_step("1 MiB, which 512 tokens fill to the last byte", (2**20, 4)),
        _leaves_step("numbers of 2 bytes and of 8", (2**20, 2), (2**20, 8)),
        _leaves_step(
            "caches of 32 KiB to 480 MiB",
            *((2**10 * size, 4) for size in (32, 48, 512, 1280, 2048, 32_768, 491_520)),
        ),
    ),
    first_outside_solution,
    {
        "the last that fits": lambda c, i: math.isqrt(c // i),
        "rounds the root": lambda c, i: round(math.sqrt(c / i)),
        "rounds up": lambda c, i: math.ceil(math.sqrt(c / i)),
        "always float32": lambda c, i: math.isqrt(c // 4) + 1,
        "forgets the bytes": lambda c, i: math.isqrt(c) + 1,
        "one row, not a matrix": lambda c, i: c // i + 1,
        "one beyond the first": lambda c, i: math.isqrt(c // i) + 2,
    },
)

# --- 2.3 ------------------------------------------------------------------------


def _overtakes(crossover: Callable, head_dim: int, group: int) -> None:
    """Compare the matrices of one KV head with the tensors of the same group."""
    n = crossover(head_dim, group)
    said = f"head_dim {head_dim}, group {group}: you return {n}"
    expect(n == int(n) and n > 0, f"{said}; expected a whole number of tokens")
    geometry = Geometry(1, group, 1, head_dim)

    def sides(tokens: int) -> tuple[int, int]:
        return 4 * group * tokens**2, tensor_bytes(tokens, tokens, geometry)

    matrices, tensors = sides(int(n))
    expect(
        matrices > tensors,
        f"{said}, where the matrices of the group take {matrices:,} B and q, k, v and "
        f"out take {tensors:,} B",
    )
    matrices, tensors = sides(int(n) - 1)
    expect(
        matrices <= tensors,
        f"{said}, but at {int(n) - 1} the matrices already take {matrices:,} B "
        f"against {tensors:,} B; expected the first n",
    )


def _overtakes_step(claim: str, *cases: tuple[int, int]) -> Step:
    def test(crossover: Callable) -> None:
        for head_dim, group in cases:
            _overtakes(crossover, head_dim, group)

    return Step(claim, test)


def crossover_solution(head_dim: int, group: int) -> int:
    """Solve group n^2 > (2 group + 2) n d: q and out per query head, k and v once."""
    return head_dim * (2 * group + 2) // group + 1


crossover = Exercise(
    "2.3",
    "When the matrix is larger than everything else",
    3,
    (
        _overtakes_step("one query head per KV head, head_dim 128", (128, 1)),
        _overtakes_step("another width", (64, 1), (80, 1)),
        _overtakes_step("two query heads per KV head", (128, 2)),
        _overtakes_step("groups of 3 to 16", (128, 3), (64, 4), (96, 7), (128, 16)),
    ),
    crossover_solution,
    {
        "where they are equal": lambda d, g: d * (2 * g + 2) // g,
        "four widths whatever the group": lambda d, g: 4 * d + 1,
        "always width 128": lambda d, g: 128 * (2 * g + 2) // g + 1,
        "out is forgotten": lambda d, g: d * (g + 2) // g + 1,
        "k and v per query head": lambda d, g: d * 4 * g // g + 1,
        "k and v are forgotten": lambda d, g: 2 * d + 1,
        "one matrix for the group": lambda d, g: d * (2 * g + 2) + 1,
    },
)

EXERCISES = (three_counts, first_outside, crossover)
