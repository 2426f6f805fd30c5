"""Check what is claimed about texts that change (chapter 13)."""

import math
from functools import cache
from random import Random

import numpy as np

from flashlib.experiments.disturb import disturb, story_model
from flashlib.experiments.division import divide_first, divide_last, three_walks
from flashlib.ledger.rows import Finding
from flashlib.model import Operations, RoundedOperations
from flashlib.model.stories import story

# Printed percentages, before and after: the best first word, and the surname.
FIRST, SURNAME = (46.8, 46.4), (5.70, 6.28)
# A printed digit may hide so much.
HALF = 0.005
# Of the story as much is read: one tile of 64 keys and half of another.
TOKENS = 96


def needed() -> float:
    """Return how far the surname's log probability rose, at least."""
    return math.log((SURNAME[1] - HALF) / (SURNAME[0] + HALF))


@cache
def _logits(engine: str, rounding: str = "") -> np.ndarray:
    model = story_model()
    tokens = model.tokenizer.encode(story(Random(13)))[:TOKENS]
    if rounding:
        return model.prefill(tokens, RoundedOperations(rounding, "numpy", engine))[0]
    return model.prefill(tokens, Operations("numpy", engine))[0]


def _reach(rounding: str = "") -> float:
    """Return the largest shift of a rival when flash replaces the matrix."""
    engines = (_logits(engine, rounding) for engine in ("materialized", "flash"))
    return float(disturb(*engines).shifts.max())


def surname_turned() -> Finding:
    """Say what the printed figures need; the model and its weights are not here."""
    odds = [math.log(p / (100 - p)) for p in FIRST]
    return Finding(
        "not testable here",
        f"the model is not part of this package; the printed figures need a shift of "
        f"{odds[0] - odds[1]:.3f} in log odds of the first word and a rise of at least "
        f"{needed():.3f} in the log probability of the surname, and the same change of "
        f"engine shifts the story model by {_reach():.1e}",
    )


def same_engine_same_bytes() -> Finding:
    """Run the matrix engine, the other one, and the matrix engine again."""
    before = _logits("materialized").tobytes()
    other = _logits("flash").tobytes()
    after = _logits.__wrapped__("materialized").tobytes()  # not what was kept
    return Finding.of(
        before == after,
        f"{len(before):,} bytes of logits are the same in both runs of the engine that "
        f"keeps the matrix; those of the other engine are "
        f"{'the same' if other == before else 'not'}",
    )


def noise_moved_probabilities() -> Finding:
    """Compare what the figures need with what a change of engine does."""
    plain, coarse = _reach(), {x: _reach(x) for x in ("bfloat16", "int8")}
    said = ", ".join(f"{reach:.1e} with {x}" for x, reach in coarse.items())
    return Finding.of(
        plain >= needed(),
        f"the surname needs a rise of at least {needed():.3f}; in the story model the "
        f"change of engine moves a rival by {plain:.1e} in float32, "
        f"{needed() / plain:,.0f} times less, and by {said} activations",
    )


def _differing(function: object, lengths: tuple[int, ...]) -> tuple[int, int]:
    """Count numbers whose bits differ from those of the old loop, and all."""
    rng = np.random.default_rng(12)
    differ = total = 0
    for n in lengths:
        s = (3 * rng.standard_normal(n)).astype(np.float32)
        v = rng.standard_normal((n, 128)).astype(np.float32)
        differ += int((function(s, v) != divide_first(s, v)).sum())
        total += v.shape[1]
    return differ, total


def no_order_to_imitate() -> Finding:
    """Stream in three walks, and compare bits with the old loop."""
    lengths = (1, 17, 64, 65, 511)
    stream, total = _differing(
        lambda s, v: three_walks(lambda a, b: s[a:b], v, 64), lengths
    )
    last, _ = _differing(divide_last, lengths)
    return Finding.of(
        stream > 0,
        f"dividing last changes {last} of {total} numbers; a stream that divides "
        f"first, in tiles of 64, changes {stream}, for rows of up to {lengths[-1]} "
        "keys; it computes the scores three times",
    )


def one_tile_divides_first() -> Finding:
    """Take rows of one tile, where nothing is rescaled and only a division moves."""
    lengths = (2, 6, 17, 33, 64)
    first, total = _differing(
        lambda s, v: three_walks(lambda a, b: s[a:b], v, 64), lengths
    )
    last, _ = _differing(divide_last, lengths)
    return Finding.of(
        first > 0,
        f"in rows of 2 to 64 keys, one tile, dividing last changes {last} of {total} "
        f"numbers and dividing first changes {first}: the old bits can be had",
    )
