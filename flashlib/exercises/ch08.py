"""Exercises on bars, grids and tests that can fail (chapter 8)."""

from collections.abc import Callable, Sequence

import numpy as np

from flashlib.exercises.answers import ch08 as answers
from flashlib.exercises.exercise import (
    Exercise,
    Step,
    expect,
    expect_close,
    expect_numbers,
)
from flashlib.exercises.relatives import CappedExponent, FirstScore, Watched
from flashlib.mutants import MUTANTS, PlainLoop
from flashlib.reference import materialized_attention
from flashlib.testing import make_qkv, oracle

# ---- 8.1 -----------------------------------------------------------------------------


def _four_numbers(answer: Sequence) -> None:
    expect_numbers(answer, (4,), "steps for two gaps, on two grids")


def _whole_numbers(answer: Sequence) -> None:
    broken = [x for x in answer if x != round(x)]
    expect(
        not broken,
        f"{broken} are not whole; both floats lie on the grid, and so does their "
        "difference",
    )


def _coarse_grid(answer: Sequence) -> None:
    want = [round(gap / 2.0**-24) for gap in (1.79e-7, 2.38e-7)]
    expect_close(answer[:2], want, "your count between 1/2 and 1")


def _fine_grid(answer: Sequence) -> None:
    apart = np.spacing(np.float32(0.15))
    want = [round(float(gap / apart)) for gap in (1.79e-7, 2.38e-7)]
    expect_close(answer[2:], want, "your count between 1/8 and 1/4")


def steps_apart() -> list[int]:
    """Divide by the grid: 2**-24 from 1/2 to 1, and 2**-26 from 1/8 to 1/4."""
    gaps = 1.79e-7, 2.38e-7
    return [round(gap / grid) for grid in (2.0**-24, 2.0**-26) for gap in gaps]


grid = Exercise(
    number="8.1",
    title="Steps on the grid",
    stars=1,
    steps=(
        Step("four numbers", _four_numbers),
        Step("all of them whole", _whole_numbers),
        Step("between 1/2 and 1", _coarse_grid),
        Step("between 1/8 and 1/4", _fine_grid),
    ),
    solution=steps_apart,
    wrong={
        "eps_for_the_grid": [1.5, 2, 6, 8],
        "one_grid_for_all": [3, 4, 3, 4],
        "grid_coarser_below": [3, 4, 1, 1],
        "halved_once": [3, 4, 6, 8],
        "only_two": [3, 4],
        "gap_by_gap": [3, 12, 4, 16],
    },
    value=True,
    right={"an_array": np.array([3.0, 4.0, 12.0, 16.0])},
)

# ---- 8.2 -----------------------------------------------------------------------------


def _asked(passes: Callable, attention: Callable) -> tuple[bool, float]:
    watched = Watched(attention)
    answer = passes(watched)
    expect(
        isinstance(answer, (bool, np.bool_)), f"it returned {answer!r}; expected a bool"
    )
    return bool(answer), watched.top


def _accepts(passes: Callable, attention: Callable, who: str) -> None:
    answer, _ = _asked(passes, attention)
    expect(answer, f"passes({who}) is False, and nothing is wrong with it")


def _refuses(passes: Callable, attention: Callable, who: str, hint: str) -> None:
    answer, top = _asked(passes, attention)
    expect(
        not answer,
        f"passes({who}) is True; the largest score it was asked for is {top:.3g}; "
        f"{hint}",
    )


def _right_loop(passes: Callable) -> None:
    _accepts(passes, PlainLoop(), "the right loop")


def _other_rounding(passes: Callable) -> None:
    _accepts(passes, materialized_attention, "the score matrix in float32")

    def tiny_tiles(q, k, v, **options):
        return PlainLoop()(q, k, v, **{**options, "tile": 1})

    def in_double(q, k, v, **options):
        call = (x.astype(np.float64) for x in (q, k, v))
        return materialized_attention(*call, **options)

    _accepts(passes, tiny_tiles, "the right loop in tiles of 1")
    _accepts(passes, in_double, "the score matrix in float64")


def _no_max(passes: Callable) -> None:
    hint = "exp overflows float32 from 88.8 on"
    _refuses(passes, MUTANTS["no_max"].attention, "no_max", hint)


def _capped(passes: Callable) -> None:
    hint = "its result is finite, but two scores above 80 weigh the same"
    _refuses(passes, CappedExponent(), "a loop that caps exponents at 80", hint)


def _first(passes: Callable) -> None:
    hint = "it is right as long as the first score is near the largest"
    _refuses(passes, FirstScore(), "a loop that subtracts the first score", hint)


def hot_scores_pass(attention: Callable) -> bool:
    """Ask for scores 0, 200 and 199: only their differences count."""
    q = np.ones((1, 1, 1), np.float32)
    k = np.float32([0, 200, 199]).reshape(3, 1, 1)
    v = np.float32([9, 1, 0]).reshape(3, 1, 1)
    out = attention(q, k, v, scale=1.0).out.item()
    return abs(out - 1 / (1 + np.exp(-1))) < 1e-6


def _one_row(attention: Callable, scores: Sequence, values: Sequence) -> float:
    k, v = (np.float32(x).reshape(-1, 1, 1) for x in (scores, values))
    return attention(np.ones((1, 1, 1), np.float32), k, v, scale=1.0).out.item()


def _mild(attention: Callable) -> bool:
    q, k, v = make_qkv(65)
    gap = attention(q, k, v).out - materialized_attention(q, k, v).out
    return bool(np.abs(gap).max() < 1e-4)


def _finite_is_enough(attention: Callable) -> bool:
    return bool(np.isfinite(_one_row(attention, [0, 200, 199], [9, 1, 0])))


def _equal_hot_scores(attention: Callable) -> bool:
    return abs(_one_row(attention, [200, 200], [1, 0]) - 0.5) < 1e-6


def _largest_first(attention: Callable) -> bool:
    return abs(_one_row(attention, [200, 199], [1, 0]) - 0.7310586) < 1e-6


def _to_the_bit(attention: Callable) -> bool:
    q, k, v = make_qkv(65, heat=8)
    return bool((attention(q, k, v).out == materialized_attention(q, k, v).out).all())


kill_no_max = Exercise(
    number="8.2",
    title="The test that kills no_max",
    stars=2,
    steps=(
        Step("the right loop passes", _right_loop),
        Step("so do right kernels that round differently", _other_rounding),
        Step("no_max is refused", _no_max),
        Step("a loop that caps its exponents is refused", _capped),
        Step("a loop that subtracts the first score is refused", _first),
    ),
    solution=hot_scores_pass,
    wrong={
        "mild": _mild,
        "everything_passes": lambda attention: True,
        "finite_is_enough": _finite_is_enough,
        "equal_hot_scores": _equal_hot_scores,
        "largest_first": _largest_first,
        "to_the_bit": _to_the_bit,
        "nothing_passes": lambda attention: False,
        **answers.NO_MAX_WRONG,
    },
    right=answers.NO_MAX_RIGHT,
)

# ---- 8.3 -----------------------------------------------------------------------------

EPS = float(np.finfo(np.float32).eps)
SIZES = {"between -1 and 1": 1.0, "near 1e5": 1e5, "near 1e-5": 1e-5}


def _case(size: float, heat: float = 1.0) -> tuple[np.ndarray, ...]:
    q, k, v = make_qkv(40, 200, n_heads=2, head_dim=16, seed=8)
    return q * np.float32(heat), k, v * np.float32(size / np.abs(v).max())


def _off(attention: Callable, call: tuple) -> float:
    return float(np.abs(attention(*call).out - oracle(*call).out).max())


def _right_kernels(bar: Callable, call: tuple, what: str) -> None:
    allowed = float(bar(*call))
    for name, attention in (
        ("the right loop", PlainLoop()),
        ("the score matrix", materialized_attention),
    ):
        off = _off(attention, call)
        expect(
            off <= allowed,
            f"{what} {name} is off by {off:.2g}, and the bar is {allowed:.2g}",
        )


def _one_number(bar: Callable) -> None:
    got = bar(*_case(1.0))
    shape = np.shape(got)
    expect(shape == (), f"bar has shape {shape}; expected one number for the call")
    expect(got > 0, f"bar is {got}; expected a number > 0")


def _mild_passes(bar: Callable) -> None:
    _right_kernels(bar, _case(1.0), "with values between -1 and 1:")


def _any_size_passes(bar: Callable) -> None:
    for what, size in SIZES.items():
        _right_kernels(bar, _case(size), f"with values {what}:")


def _hot_passes(bar: Callable) -> None:
    call = _case(1.0, heat=150)
    top = np.abs(np.einsum("ihd,jd->hij", call[0], call[1][:, 0])).max() / 4
    _right_kernels(bar, call, f"with scores up to {top:.0f}:")


def _wrong_kernels(bar: Callable) -> None:
    for what, size in SIZES.items():
        call = _case(size)
        allowed = float(bar(*call))
        for name in ("half_weights", "short_exp"):
            off = _off(MUTANTS[name].attention, call)
            expect(
                off > allowed,
                f"with values {what}, {name} is off by {off:.2g}, and the bar is "
                f"{allowed:.2g}",
            )


def moving_bar(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> float:
    """Allow twice what plain float32 loses on the same call, and one unit."""
    plain = materialized_attention(q, k, v).out
    unit = np.finfo(np.float32).eps * np.abs(v).max()
    return 2 * np.abs(plain - oracle(q, k, v).out).max() + unit


bar = Exercise(
    number="8.3",
    title="A bar that moves",
    stars=3,
    steps=(
        Step("one positive number", _one_number),
        Step("right kernels pass on mild inputs", _mild_passes),
        Step("right kernels pass whatever the size of the values", _any_size_passes),
        Step("right kernels pass when the scores are hot", _hot_passes),
        Step("half_weights and short_exp fail at every size", _wrong_kernels),
    ),
    solution=moving_bar,
    wrong={
        "always_1e-4": lambda q, k, v: 1e-4,
        "eight_eps": lambda q, k, v: 8 * EPS,
        "one_eps_of_v": lambda q, k, v: 0.05 * EPS * np.abs(v).max(),
        "eight_units": lambda q, k, v: 8 * EPS * np.abs(v).max(),
        "1e-4_of_v": lambda q, k, v: 1e-4 * np.abs(v).max(),
        "one_bar_per_value": lambda q, k, v: EPS * np.abs(v),
        **answers.BAR_WRONG,
    },
    right=answers.BAR_RIGHT,
)

EXERCISES = (grid, kill_no_max, bar)
