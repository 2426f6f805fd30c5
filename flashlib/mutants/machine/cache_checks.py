"""What caches, tiles, cores and prefill have to get right (chapters 21, 22, 23).

The decode checks lay the same rows out in several ways; the answer is that of the
oracle every time.
"""

import numpy as np

from flashlib.machine.dtypes import BFLOAT16
from flashlib.mutants.machine.checks import named
from flashlib.programs.attention_cte import attention_cte
from flashlib.programs.cache_call import decode_cached
from flashlib.reference import materialized_attention

HEADS, WIDTH = 2, 8


def _draw(*shape: int, seed: int = 21) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def _decode(slots: int, **how: object) -> None:
    """Hold one new token over ``slots - 1`` cached ones to the oracle."""
    q = _draw(1, HEADS, 1, WIDTH)
    k, v = _draw(2, 1, slots, WIDTH)
    rows = (q[0].transpose(1, 0, 2), k[0][:, None], v[0][:, None])
    sink = how.get("sink")
    want = materialized_attention(*rows, scale=1.0, sink=sink, dtype=np.float64).out
    got = decode_cached(q, k, v, **how).out[0, :, :, 0]
    _close(got, want[0], 1e-5 * np.abs(v).max())


def _prefill(seq: int, offset: int = 0, stride: int = 1) -> None:
    """Hold a causal prompt, or every ``stride``-th row of one, to the oracle."""
    q = _draw(1, seq, WIDTH).astype(BFLOAT16).astype(np.float32)
    k, v = _draw(2, 1, seq * stride, WIDTH).astype(BFLOAT16).astype(np.float32)
    at = offset + np.arange(seq) * stride
    mask = np.arange(seq * stride) <= at[:, None]
    rows = [x[0][:, None] for x in (q, k, v)]
    want = materialized_attention(*rows, scale=1.0, mask=mask, dtype=np.float64).out
    how = {"scale": 1.0, "q_offset": offset, "q_stride": stride}
    _close(attention_cte(q, k, v, **how).out[0], want[:, 0], 2e-2 * np.abs(v).max())


def _close(got: np.ndarray, want: np.ndarray, allowed: float) -> None:
    error = np.abs(got.astype(np.float64) - want).max()
    assert error <= allowed, (
        f"out has an error of {error:.2g}; expected at most {allowed:.2g}"
    )


def flat_cache() -> None:
    """256 slots of a flat cache."""
    _decode(256)


def whole_pages() -> None:
    """128 pages of 2 tokens: as many pages as partitions."""
    _decode(256, cache="pages", block_len=2)


def cut_pages() -> None:
    """16 pages of 16 tokens, which have to be cut."""
    _decode(256, cache="pages", block_len=16)


def two_tiles() -> None:
    """256 slots in two tiles."""
    _decode(256, tile=128)


def sink_in_one_tile() -> None:
    """A sink for each head, one tile."""
    _decode(256, sink=np.float32([1, 2]))


def sink_over_two_tiles() -> None:
    """A sink for each head, two tiles."""
    _decode(256, tile=128, sink=np.float32([1, 2]))


def two_cores() -> None:
    """256 slots on two cores, with sinks."""
    _decode(256, lnc=2, sink=np.float32([1, 2]))


def two_cores_in_tiles() -> None:
    """512 slots on two cores, in two tiles each."""
    _decode(512, lnc=2, tile=128)


def whole_prompt() -> None:
    """A causal prompt of 700 tokens."""
    _prefill(700)


def every_fourth_row() -> None:
    """Every fourth row of a causal prompt of 800 tokens."""
    _prefill(200, 1, 4)


CHECKS = named(
    flat_cache,
    whole_pages,
    cut_pages,
    two_tiles,
    sink_in_one_tile,
    sink_over_two_tiles,
    two_cores,
    two_cores_in_tiles,
    whole_prompt,
    every_fourth_row,
)
