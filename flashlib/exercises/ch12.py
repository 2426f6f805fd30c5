"""Exercises on the break-even, and on a gate that gives its reason (chapter 12)."""

from collections.abc import Callable, Mapping

import numpy as np

from flashlib.errors import ArgumentError, Refused
from flashlib.exercises.exercise import (
    Exercise,
    Step,
    expect,
    expect_close,
    expect_numbers,
)
from flashlib.experiments.break_even import CROSSINGS
from flashlib.traffic import causal_pairs

# ---- 12.1 ----------------------------------------------------------------------------


def _three(answer: object) -> None:
    expect_numbers(answer, (3,), "a compute ratio")


def _free(answer: object) -> None:
    expect_close(answer[0], 0.5, "the ratio where traffic is free", 0.002)


def _equal(answer: object) -> None:
    expect_close(answer[1], 0.25, "the ratio where traffic takes as long", 0.002)


def _slow(answer: object) -> None:
    expect_close(
        answer[2], 0.125, "the ratio where it takes three times as long", 0.002
    )


def three_ratios() -> list[float]:
    """Divide half the pairs by arithmetic and traffic."""
    return [0.5 / (1 + traffic) for traffic in (0, 1, 3)]


ratios = Exercise(
    number="12.1",
    title="Three machines",
    stars=1,
    steps=(
        Step("three ratios", _three),
        Step("a memory that costs nothing", _free),
        Step("traffic as long as arithmetic", _equal),
        Step("traffic three times as long", _slow),
    ),
    solution=three_ratios,
    wrong={
        "triangle forgotten": [1.0, 0.5, 0.25],
        "traffic alone": [0.5, 0.5, 0.167],
        "traffic for free": [0.5, 0.5, 0.5],
        "upside down": [2.0, 4.0, 8.0],
    },
    value=True,
    right={"an array": np.array([0.5, 0.25, 0.125])},
)

# ---- 12.2 ----------------------------------------------------------------------------

RATE, BANDWIDTH = 100e9, 12.5e9


def _edge(n: int, width: int, rate: float, bandwidth: float) -> float:
    """Return the rate of the streaming loop at which both take equally long."""
    traffic = CROSSINGS * 4 * rate / (4 * width * bandwidth)
    return rate * causal_pairs(n) / n**2 / (1 + traffic)


def _asked(answer: Callable, case: tuple, want: bool, what: str) -> None:
    got = answer(*case)
    expect(isinstance(got, (bool, np.bool_)), f"{what}: {got!r}; expected a bool")
    expect(bool(got) == want, f"{what}, {case}: {got}; expected {want}")


def _same_machine(answer: Callable) -> None:
    _asked(answer, (511, 128, RATE, RATE, BANDWIDTH), True, "equal rates")


def _weak(answer: Callable) -> None:
    _asked(answer, (511, 128, RATE, RATE / 20, BANDWIDTH), False, "a twentieth")


def _triangle(answer: Callable) -> None:
    _asked(answer, (511, 128, RATE, 0.6 * RATE, 1e15), True, "0.6 of it, memory free")


def _traffic(answer: Callable) -> None:
    _asked(answer, (511, 128, RATE, 0.4 * RATE, 1e9), True, "0.4 of it, memory slow")


def _close_to(answer: Callable, n: int, width: int) -> None:
    edge = _edge(n, width, RATE, BANDWIDTH)
    for factor, want in ((0.98, False), (1.02, True)):
        case = (n, width, RATE, factor * edge, BANDWIDTH)
        _asked(answer, case, want, f"{factor} of the rate at which both tie")


def _tight(answer: Callable) -> None:
    _close_to(answer, 511, 128)


def _widths(answer: Callable) -> None:
    _close_to(answer, 511, 64)


def _short(answer: Callable) -> None:
    _close_to(answer, 4, 128)


def should_flash(
    n: int, width: int, rate_matrix: float, rate_flash: float, bandwidth: float
) -> bool:
    """Compare seconds: all pairs and six crossings, or the pairs of the triangle."""
    matrix = 4 * width * n * n / rate_matrix + 6 * 4 * n * n / bandwidth
    streaming = 4 * width * (n * (n + 1) // 2) / rate_flash
    return streaming < matrix


def _asks(crossed: float, all_pairs: bool = False, half: bool = False) -> Callable:
    def answer(n, width, rate_matrix, rate_flash, bandwidth):
        pairs = n * n if all_pairs else n * n / 2 if half else n * (n + 1) / 2
        matrix = 4 * width * n * n / rate_matrix + crossed * 4 * n * n / bandwidth
        return 4 * width * pairs / rate_flash < matrix

    return answer


verdict = Exercise(
    number="12.2",
    title="should_flash",
    stars=2,
    steps=(
        Step("on one machine streaming wins", _same_machine),
        Step("a much weaker machine loses", _weak),
        Step("half the pairs count", _triangle),
        Step("the traffic of the matrix counts", _traffic),
        Step("right within two percent of the tie", _tight),
        Step("other widths", _widths),
        Step("short prompts, where the triangle is more than a half", _short),
    ),
    solution=should_flash,
    wrong={
        "rates alone": lambda n, d, x, y, w: y >= x,
        "always": lambda *x: True,
        "every pair": _asks(6, all_pairs=True),
        "no traffic": _asks(0),
        "the footprint once": _asks(1),
        "an exact half": _asks(6, half=True),
        "width fixed": lambda n, d, x, y, w: _asks(6)(n, 128, x, y, w),
        "a number": lambda *x: int(should_flash(*x)),
    },
    right={"a NumPy bool": lambda *x: np.bool_(should_flash(*x))},
)

# ---- 12.3 ----------------------------------------------------------------------------

NO_TILES = "it keeps all scores of a head"
TOO_LARGE = "16 GiB of scores do not fit"


def _choice(answer: Callable, case: tuple, algorithm: str) -> str:
    got = answer(*case)
    pair = isinstance(got, (tuple, list)) and len(got) == 2
    expect(pair, f"{case}: {got!r}; expected 2 things, (algorithm, reason)")
    right = got[0] == algorithm
    expect(right, f"{case}: the algorithm is {got[0]!r}; expected {algorithm!r}")
    said = isinstance(got[1], str) and len(got[1].split())
    expect(bool(said), f"{case}: the reason is {got[1]!r}, with {said} words")
    return got[1]


def _raises(answer: Callable, case: tuple, error: type, words: str) -> None:
    try:
        got = answer(*case)
    except error as raised:
        said = str(raised)
        expect(words in said, f"{case}: it says {said!r}; expected {words!r} in it")
        return
    missed = f"your function returned {got!r}; expected it to raise {error.__name__}"
    expect(False, f"{case}: {missed}")


def _auto(answer: Callable) -> None:
    _choice(answer, ("auto", "flash", {}), "flash")
    _choice(answer, ("auto", "materialized", {"flash": NO_TILES}), "materialized")


def _explicit(answer: Callable) -> None:
    _choice(answer, ("materialized", "flash", {}), "materialized")
    _choice(answer, ("flash", "materialized", {}), "flash")


def _refuses(answer: Callable) -> None:
    refusals = {"flash": NO_TILES}
    _raises(answer, ("flash", "materialized", refusals), Refused, NO_TILES)


def _second_best(answer: Callable) -> None:
    refusals = {"materialized": TOO_LARGE}
    reason = _choice(answer, ("auto", "materialized", refusals), "flash")
    said = f"the reason is {reason!r}; expected {TOO_LARGE!r} in it"
    expect(TOO_LARGE in reason, said)


def _neither(answer: Callable) -> None:
    refusals = {"flash": NO_TILES, "materialized": TOO_LARGE}
    _raises(answer, ("auto", "materialized", refusals), Refused, TOO_LARGE)


def _unknown(answer: Callable) -> None:
    _raises(answer, ("flsh", "flash", {}), ArgumentError, "flsh")


def choose(
    request: str, preferred: str, refusals: Mapping[str, str]
) -> tuple[str, str]:
    """Obey or refuse an explicit request; settle auto with what is not refused."""
    if request not in ("auto", "flash", "materialized"):
        raise ArgumentError(f"algorithm has {request!r}; expected a known one")
    if request != "auto":
        if request in refusals:
            raise Refused(f"algorithm has {request!r}; {refusals[request]}")
        return request, "asked for"
    if preferred not in refusals:
        return preferred, "preferred here"
    other = "flash" if preferred == "materialized" else "materialized"
    if other in refusals:
        raise Refused(f"{refusals[preferred]}; {refusals[other]}")
    return other, refusals[preferred]


def _falls_back(request: str, preferred: str, refusals: Mapping) -> tuple:
    return choose("auto" if request in refusals else request, preferred, refusals)


def _stubborn(request: str, preferred: str, refusals: Mapping) -> tuple:
    if request == "auto":
        return preferred, "preferred here"
    return choose(request, preferred, refusals)


def _no_reason(request: str, preferred: str, refusals: Mapping) -> tuple:
    return choose(request, preferred, refusals)[0], ""


def _mute(request: str, preferred: str, refusals: Mapping) -> tuple:
    algorithm, _ = choose(request, preferred, refusals)
    return algorithm, "chosen by the gate"


def _anything(request: str, preferred: str, refusals: Mapping) -> tuple:
    known = request in ("auto", "flash", "materialized")
    return choose(request if known else "auto", preferred, refusals)


def _knows_better(request: str, preferred: str, refusals: Mapping) -> tuple:
    algorithm, reason = choose(request, preferred, refusals)
    return (algorithm if algorithm in refusals else preferred), reason


def _last_resort(request: str, preferred: str, refusals: Mapping) -> tuple:
    if request == "auto" and len(refusals) == 2:
        return preferred, "nothing else is left"
    return choose(request, preferred, refusals)


gate = Exercise(
    number="12.3",
    title="A gate that gives its reason",
    stars=3,
    steps=(
        Step("auto follows the preference, with a reason", _auto),
        Step("an explicit request that is possible is obeyed", _explicit),
        Step("an explicit request that is not is refused, with the reason", _refuses),
        Step("auto goes around a refusal and says so", _second_best),
        Step("where both are refused, so is auto", _neither),
        Step("an unknown name is an error of its own", _unknown),
    ),
    solution=choose,
    wrong={
        "silent fallback": _falls_back,
        "stubborn": _stubborn,
        "no reason": _no_reason,
        "another reason": _mute,
        "anything goes": _anything,
        "knows better": _knows_better,
        "last resort": _last_resort,
    },
    right={"a list": lambda *x: list(choose(*x))},
)

EXERCISES = (ratios, verdict, gate)
