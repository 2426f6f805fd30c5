"""Exercises on the operations of a whole model (chapter 10)."""

from collections.abc import Callable, Mapping, Sequence
from numbers import Real

from flashlib.exercises.exercise import (
    Exercise,
    Step,
    UnfilledError,
    expect,
    expect_numbers,
)
from flashlib.experiments.histogram import NAMES, expected, traced

FILL, _, SOFTMAX, MATMUL, FLASH, FUSED = NAMES

# ---- 10.1 ----------------------------------------------------------------------------

LAYERS, TOKENS, HEADS = 32, 3, 16
ASKED = (
    ("materialized", FILL),
    ("materialized", SOFTMAX),
    ("materialized", MATMUL),
    ("flash", SOFTMAX),
    ("flash", MATMUL),
    ("flash", FLASH),
    ("flash", FUSED),
)


def _seven(answer: Sequence) -> None:
    if any(entry is ... for entry in answer):
        raise UnfilledError
    expect_numbers(answer, (len(ASKED),), "a count per operation")


def _places(*places: int) -> Callable[[Sequence], None]:
    """Return a test of some entries against the traced model."""

    def test(answer: Sequence) -> None:
        for place in places:
            engine, name = ASKED[place]
            want = traced(LAYERS, HEADS, TOKENS, engine)[name]
            expect(
                answer[place] == want,
                f"entry {place}, {name} of the {engine} engine, is {answer[place]}; "
                f"a traced model of {LAYERS} layers makes {want} calls",
            )

    return test


def thirty_two_layers() -> list[int]:
    """Count heads once per prompt, projections once per pass."""
    heads = 32 * 16
    products = 3 * (7 * 32 + 1)
    return [heads, heads + 3, products + 2 * heads, 3, products, 32, 2 * 32]


predicted = Exercise(
    number="10.1",
    title="Thirty-two layers, three tokens",
    stars=1,
    steps=(
        Step("seven counts", _seven),
        Step("a mask per head and layer, in prefill only", _places(0)),
        Step("a softmax per head and layer, and one per token", _places(1, 3)),
        Step("seven products per layer and a head, in every pass", _places(4)),
        Step("two products more per head and layer", _places(2)),
        Step("attention in one operation per layer and pass", _places(5, 6)),
    ),
    solution=thirty_two_layers,
    wrong={
        "masks_in_every_pass": [1536, 515, 1699, 3, 675, 32, 64],
        "no_softmax_for_tokens": [512, 512, 1699, 0, 675, 32, 64],
        "two_passes": [512, 515, 1474, 3, 450, 32, 64],
        "no_head": [512, 515, 1696, 3, 672, 32, 64],
        "one_product_per_head": [512, 515, 1187, 3, 675, 32, 64],
        "last_token_is_run": [512, 515, 1699, 3, 675, 32, 96],
    },
    value=True,
)

# ---- 10.2 ----------------------------------------------------------------------------

Counted = Mapping[str, int]


def _agrees(*names: str) -> Callable[[Callable], None]:
    """Return a test of some operations on four sizes and both engines."""

    def test(histogram: Callable[[int, int, int, str], Counted]) -> None:
        for layers, heads, tokens in ((1, 2, 1), (3, 2, 2), (2, 4, 3), (28, 16, 2)):
            for engine in ("materialized", "flash"):
                got = histogram(layers, heads, tokens, engine)
                want = traced(layers, heads, tokens, engine)
                for name in names:
                    expect(
                        got.get(name, 0) == want[name],
                        f"histogram({layers}, {heads}, {tokens}, {engine!r}) has "
                        f"{name} = {got.get(name, 0)}; traced: {want[name]}",
                    )

    return test


def _is_mapping(histogram: Callable) -> None:
    got = histogram(2, 4, 3, "flash")
    expect(isinstance(got, Mapping), f"the answer is {got!r}; expected a dict of 6")


def histogram(layers: int, n_heads: int, tokens: int, algorithm: str) -> dict:
    """Return the calls of the six operations of the figure."""
    heads = layers * n_heads if algorithm == "materialized" else 0
    return {
        "fill_strict_upper_tri": heads,
        "transpose_2d": heads,
        "softmax_rows": tokens + heads,
        "matmul": tokens * (7 * layers + 1) + 2 * heads,
        "flash_attention_prefill": layers if algorithm == "flash" else 0,
        "fused_attention": layers * (tokens - 1),
    }


def _with(**changes: Callable[[int, int, int, str], int]) -> Callable:
    """Return a histogram in which some counts are replaced."""

    def wrong(layers: int, n_heads: int, tokens: int, algorithm: str) -> dict:
        counts = dict(expected(layers, n_heads, tokens, algorithm))
        values = {
            name: count(layers, n_heads, tokens, algorithm)
            for name, count in changes.items()
        }
        return counts | values

    return wrong


formula = Exercise(
    number="10.2",
    title="The histogram as a function",
    stars=2,
    steps=(
        Step("a dict of counts", _is_mapping),
        Step("masks and transposes", _agrees("fill_strict_upper_tri", "transpose_2d")),
        Step("softmax", _agrees("softmax_rows")),
        Step("products", _agrees("matmul")),
        Step("both kinds of attention", _agrees(FLASH, FUSED)),
    ),
    solution=histogram,
    wrong={
        "number_only": lambda layers, n_heads, tokens, algorithm: 7 * layers,
        "fills_after": _with(fill_strict_upper_tri=lambda n, h, t, _: n * h),
        "one_softmax": _with(
            softmax_rows=lambda n, h, t, a: 1 + n * h * (a != "flash")
        ),
        "six_projections": _with(
            matmul=lambda n, h, t, a: t * (6 * n + 1) + 2 * n * h * (a != "flash")
        ),
        "head_once": _with(
            matmul=lambda n, h, t, a: t * 7 * n + 1 + 2 * n * h * (a != "flash")
        ),
        "flash_in_every_pass": _with(
            flash_attention_prefill=lambda n, h, t, a: n * t * (a == "flash")
        ),
        "decode_after_only": _with(
            fused_attention=lambda n, h, t, a: n * (t - 1) * (a == "flash")
        ),
    },
)

# ---- 10.3 ----------------------------------------------------------------------------

MODELS = ((28, 16, 2), (6, 4, 5), (36, 32, 3), (1, 1, 1), (64, 40, 12))


def _seen(layers: int, heads: int, tokens: int) -> dict[str, int]:
    """Return the three counts that a reader of the exercise is given."""
    counts = expected(layers, heads, tokens, "materialized")
    return {name: counts[name] for name in (FILL, SOFTMAX, MATMUL)}


def _finds(place: int, what: str) -> Callable[[Callable], None]:
    """Return a test of one of the three numbers."""

    def test(sizes: Callable[[Counted], Sequence[int]]) -> None:
        for model in MODELS:
            counts = _seen(*model)
            got = tuple(sizes(counts))
            whole = len(got) == 3 and all(isinstance(n, Real) for n in got)
            expect(whole, f"the answer is {got}; expected 3 numbers")
            expect(
                got[place] == model[place],
                f"sizes({counts}) says {got[place]} {what}; it was {model[place]}",
            )

    return test


def sizes(counts: Mapping[str, int]) -> tuple[int, int, int]:
    """Return layers, query heads and new tokens of the engine with matrices."""
    fills = counts["fill_strict_upper_tri"]
    tokens = counts["softmax_rows"] - fills
    per_pass = (counts["matmul"] - 2 * fills) // tokens
    layers = (per_pass - 1) // 7
    return layers, fills // layers, tokens


def _assumes_two_tokens(counts: Counted) -> tuple[int, int, int]:
    layers = ((counts[MATMUL] - 2 * counts[FILL]) // 2 - 1) // 7
    return layers, counts[FILL] // max(layers, 1), 2


def _assumes_sixteen_heads(counts: Counted) -> tuple[int, int, int]:
    return counts[FILL] // 16, 16, counts[SOFTMAX] - counts[FILL]


def _forgets_attention(counts: Counted) -> tuple[int, int, int]:
    tokens = counts[SOFTMAX] - counts[FILL]
    layers = (counts[MATMUL] // tokens - 1) // 7
    return layers, counts[FILL] // max(layers, 1), tokens


def _forgets_layers(counts: Counted) -> tuple[int, int, int]:
    layers, _, tokens = sizes(counts)
    return layers, counts[FILL], tokens


backwards = Exercise(
    number="10.3",
    title="Read a model off its histogram",
    stars=3,
    steps=(
        Step("the new tokens", _finds(2, "tokens")),
        Step("the layers", _finds(0, "layers")),
        Step("the query heads", _finds(1, "heads")),
    ),
    solution=sizes,
    wrong={
        "assumes_two_tokens": _assumes_two_tokens,
        "assumes_sixteen_heads": _assumes_sixteen_heads,
        "forgets_attention": _forgets_attention,
        "heads_of_all_layers": _forgets_layers,
        "two_numbers": lambda counts: sizes(counts)[:2],
    },
)

EXERCISES = (predicted, formula, backwards)
