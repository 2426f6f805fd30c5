"""What the decode kernel has to get right about masks and heads (chapters 18, 19, 20).

Every check calls the hardened kernel, which promises the oracle's answer for every
mask: 0 for a row without keys, windows that end where the cache does.
"""

import numpy as np

from flashlib.mutants.machine.checks import named
from flashlib.programs.cache_call import decode_slots
from flashlib.reference import materialized_attention

SLOTS, WIDTH = 128, 4


def _inputs(seq: int = 1, n_heads: int = 1, slots: int = SLOTS) -> list[np.ndarray]:
    rng = np.random.default_rng(18)
    shapes = (seq, n_heads, WIDTH), (slots, 1, WIDTH), (slots, 1, WIDTH)
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


def _hold(qkv: list[np.ndarray], keeps: np.ndarray, **call: object) -> None:
    """Compare with the oracle under a mask of the contract; NaN is never near."""
    sink = call.get("sink")
    want = materialized_attention(*qkv, mask=keeps, sink=sink, dtype=np.float64).out
    error = np.abs(decode_slots(*qkv, hardened=True, **call).out - want).max()
    allowed = 1e-5 * np.abs(qkv[2]).max()
    assert error <= allowed, (
        f"out has an error of {error:.2g}; expected at most {allowed:.2g}"
    )


def in_window(pos: int, seq: int, window: int, slots: int = SLOTS) -> np.ndarray:
    """Say by sets which slots each query keeps, ``[seq, slots]``.

    Tokens ``pos + i - window + 1`` up to ``pos - 1`` lie in the cache, in slot number
    token modulo slots; the active ones lie in the last slots.
    """
    keeps = np.zeros((seq, slots), bool)
    for i in range(seq):
        for token in range(pos + i - window + 1, pos):
            keeps[i, token % slots] = True
        keeps[i, slots - seq :] = np.arange(seq) <= i
    return keeps


def _window(pos: int, seq: int, window: int) -> None:
    start = (pos + np.arange(seq) - window + 1) % SLOTS
    _hold(_inputs(seq), in_window(pos, seq, window), pos=pos, start=start)


def hidden_maximum() -> None:
    """40 of 128 slots are valid; the largest score lies in one that is not."""
    q, k, v = _inputs()
    k[77] = 9 * q[0] / np.linalg.norm(q)
    keeps = np.arange(SLOTS) < 40
    keeps[-1] = True
    _hold([q, k, v], keeps[None], pos=40)


def empty_row() -> None:
    """Of two heads one attends to every slot and the other to none: it gets 0."""
    keeps = np.zeros((2, 1, SLOTS), bool)
    keeps[1] = True
    _hold(_inputs(1, 2), keeps, mask=keeps)


def plain_window() -> None:
    """A window of 8 at slot 100, three new tokens."""
    _window(100, 3, 8)


def wrapped_window() -> None:
    """A window of 8 at slot 3 of a ring, three new tokens."""
    _window(3, 3, 8)


def short_window() -> None:
    """A window of 2 and four new tokens: the later ones keep no cached slot."""
    _window(100, 4, 2)


def sinks_of_heads() -> None:
    """Three heads with sinks of their own, one new token."""
    keeps = np.arange(SLOTS)[None] < SLOTS
    sink = np.float32([-2, 0, 3])
    _hold(_inputs(1, 3), keeps, pos=SLOTS - 1, sink=sink)


def sinks_of_heads_and_tokens() -> None:
    """Three heads with sinks of their own, two new tokens."""
    keeps = np.ones((2, SLOTS), bool)
    keeps[0, -1] = False
    sink = np.float32([-2, 0, 3])
    _hold(_inputs(2, 3), keeps, pos=SLOTS - 2, sink=sink)


CHECKS = named(
    hidden_maximum,
    empty_row,
    plain_window,
    wrapped_window,
    short_window,
    sinks_of_heads,
    sinks_of_heads_and_tokens,
)
