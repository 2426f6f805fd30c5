"""Count the bytes and operations of each algorithm, without a clock (chapters 2, 6).

Footprint is what a score matrix occupies; traffic is what crosses the edge of
the memory it lies in, once per pass over it. The passes are data, so that a
page can list them and count the same list.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from flashlib.errors import ArgumentError, shown

__all__ = [
    "ENGINE_PASSES",
    "QWEN3_0_6B",
    "TEXT_PASSES",
    "Geometry",
    "Pass",
    "StateBytes",
    "attainable_flops",
    "attention_flops",
    "causal_pairs",
    "crossings",
    "flash_state_bytes",
    "intensity",
    "model_score_bytes",
    "model_score_traffic",
    "roofline_seconds",
    "score_bytes",
    "score_floats",
    "tensor_bytes",
    "visited_pairs",
]


class Geometry(NamedTuple):
    """The sizes of a model that attention depends on.

    Attributes
    ----------
    layers, n_heads, n_kv_heads, head_dim : int
        Counts per model, per layer, per layer, and the width of one head.
    """

    layers: int
    n_heads: int
    n_kv_heads: int
    head_dim: int

    @property
    def score_matrices(self) -> int:
        """Score matrices per forward pass: one per query head and layer."""
        return self.layers * self.n_heads


# Source: config.json of Qwen3-0.6B, the model of the CPU chapters.
QWEN3_0_6B = Geometry(layers=28, n_heads=16, n_kv_heads=8, head_dim=128)


class Pass(NamedTuple):
    """One pass over the score matrix: how often each element is read and written."""

    name: str
    reads: int
    writes: int


# What a reader of the story counts: write, rewrite, rewrite, read.
TEXT_PASSES = (
    Pass("scores: q @ k.T", 0, 1),
    Pass("mask", 1, 1),
    Pass("softmax", 1, 1),
    Pass("weights @ v", 1, 0),
)

# The same path with every loop of its own counted: the scale is a pass over
# the matrix, and a softmax that subtracts the maximum takes three.
ENGINE_PASSES = (
    Pass("scores: q @ k.T", 0, 1),
    Pass("scale", 1, 1),
    Pass("mask", 1, 1),
    Pass("softmax: maximum of the row", 1, 0),
    Pass("softmax: exp and sum", 1, 1),
    Pass("softmax: divide by the sum", 1, 1),
    Pass("weights @ v", 1, 0),
)


def crossings(passes: Iterable[Pass]) -> int:
    """Return how often every element crosses the edge of its memory.

    Examples
    --------
    >>> crossings(TEXT_PASSES), crossings(ENGINE_PASSES)
    (6, 11)
    """
    return sum(step.reads + step.writes for step in passes)


def score_floats(seq_q: int, seq_k: int | None = None) -> int:
    """Return the number of scores of one head, ``seq_q * seq_k``.

    Examples
    --------
    >>> score_floats(511)
    261121
    """
    return seq_q * (seq_q if seq_k is None else seq_k)


def score_bytes(seq_q: int, seq_k: int | None = None, itemsize: int = 4) -> int:
    """Return the bytes of the score matrix of one head.

    Examples
    --------
    >>> score_bytes(511)
    1044484
    """
    return itemsize * score_floats(seq_q, seq_k)


def model_score_bytes(seq: int, geometry: Geometry = QWEN3_0_6B) -> int:
    """Return the footprint of all score matrices of one prefill, in bytes.

    Examples
    --------
    >>> round(model_score_bytes(511) / 1e6, 1)
    467.9
    """
    return score_bytes(seq) * geometry.score_matrices


def model_score_traffic(
    seq: int, passes: Iterable[Pass], geometry: Geometry = QWEN3_0_6B
) -> int:
    """Return the bytes that move when every pass goes over every score matrix.

    Examples
    --------
    >>> round(model_score_traffic(511, TEXT_PASSES) / 1e9, 1)
    2.8
    >>> round(model_score_traffic(511, ENGINE_PASSES) / 1e9, 1)
    5.1
    """
    return model_score_bytes(seq, geometry) * crossings(passes)


class StateBytes(NamedTuple):
    """The buffers of one flash row, in bytes."""

    scores: int
    acc: int


def flash_state_bytes(
    tile: int = 64, head_dim_v: int = 128, itemsize: int = 4
) -> StateBytes:
    """Return what one worker of the flash loop holds, whatever the length.

    Examples
    --------
    >>> flash_state_bytes()
    StateBytes(scores=256, acc=512)
    """
    return StateBytes(itemsize * tile, itemsize * head_dim_v)


def causal_pairs(seq: int) -> int:
    """Return the (query, key) pairs that a causal loop bound visits.

    Examples
    --------
    >>> causal_pairs(511)
    130816
    """
    return seq * (seq + 1) // 2


def visited_pairs(
    seq_q: int, seq_k: int, left: int | None = None, right: int | None = None
) -> int:
    """Return the pairs inside a band, which are the pairs that a loop visits.

    Row i sits at position ``p = i + seq_k - seq_q`` and visits keys ``p -
    left`` to ``p + right``, None being no limit; causal is ``right=0``.

    Examples
    --------
    >>> visited_pairs(511, 511, None, 0) == causal_pairs(511)
    True
    >>> visited_pairs(2, 5, 1, 0)
    4
    """
    positions = np.arange(seq_q) + seq_k - seq_q
    lo = np.zeros_like(positions) if left is None else positions - left
    hi = np.full_like(positions, seq_k) if right is None else positions + right + 1
    widths = np.clip(hi, 0, seq_k) - np.clip(lo, 0, seq_k)
    return int(np.maximum(widths, 0).sum())


def attention_flops(
    pairs: int, n_heads: int, head_dim: int, head_dim_v: int | None = None
) -> int:
    """Return the operations of both products over `pairs` pairs per head.

    A multiply and an add per element: ``2 * head_dim`` for the score and
    ``2 * head_dim_v`` for the weighted value.

    Examples
    --------
    >>> attention_flops(causal_pairs(511), n_heads=16, head_dim=128) / 1e9
    1.071644672
    """
    width = head_dim + (head_dim if head_dim_v is None else head_dim_v)
    return 2 * pairs * n_heads * width


def tensor_bytes(
    seq_q: int, seq_k: int, geometry: Geometry = QWEN3_0_6B, itemsize: int = 4
) -> int:
    """Return the bytes of q, k, v and out of one layer, each counted once."""
    queries = seq_q * geometry.n_heads * geometry.head_dim
    keys = seq_k * geometry.n_kv_heads * geometry.head_dim
    return itemsize * (2 * queries + 2 * keys)


def intensity(flops: float, nbytes: float) -> float:
    """Return the arithmetic intensity in operations per byte.

    Raises
    ------
    ArgumentError
        If `nbytes` is not positive.
    """
    _positive(nbytes=nbytes)
    return flops / nbytes


def attainable_flops(
    operations_per_byte: float, peak_flops: float, bandwidth: float
) -> float:
    """Return the roof over an intensity, in operations per second.

    Parameters
    ----------
    operations_per_byte : float
        Arithmetic intensity.
    peak_flops, bandwidth : float
        The machine, in operations and in bytes per second.

    Examples
    --------
    >>> attainable_flops(2, peak_flops=100e9, bandwidth=10e9) / 1e9
    20.0
    """
    _positive(peak_flops=peak_flops, bandwidth=bandwidth)
    return min(peak_flops, operations_per_byte * bandwidth)


def roofline_seconds(
    flops: float, nbytes: float, peak_flops: float, bandwidth: float
) -> float:
    """Return the least time that arithmetic and traffic allow, if they overlap.

    Examples
    --------
    >>> roofline_seconds(1e9, 1e9, peak_flops=100e9, bandwidth=10e9)
    0.1
    """
    _positive(peak_flops=peak_flops, bandwidth=bandwidth)
    return max(flops / peak_flops, nbytes / bandwidth)


def _positive(**numbers: float) -> None:
    for name, number in numbers.items():
        if not number > 0:
            raise ArgumentError(
                f"{name} has {shown(number)}; expected a number > 0; times and "
                "intensities are divided by it"
            )
