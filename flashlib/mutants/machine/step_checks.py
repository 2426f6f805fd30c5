"""What a decode program has to get right, check by check (chapters 15, 16, 17)."""

import numpy as np

from flashlib.mutants.machine.checks import named
from flashlib.programs import decode_tile
from flashlib.reference import materialized_attention
from flashlib.row import SCORES


def _inputs(
    seq_k: int, n_heads: int = 1, n_kv_heads: int = 1, width: int = 16
) -> list[np.ndarray]:
    rng = np.random.default_rng(seq_k)
    shapes = (1, n_heads, width), (seq_k, n_kv_heads, width), (seq_k, n_kv_heads, width)
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


def _hold(*qkv: np.ndarray, scale: float | None = None) -> None:
    """Allow twice the error of plain float32 attention and one unit, not NaN."""
    got = decode_tile(*qkv, scale=scale).out
    want = materialized_attention(*qkv, scale=scale, dtype=np.float64).out
    plain = np.abs(materialized_attention(*qkv, scale=scale).out - want).max()
    error = np.abs(got.astype(np.float64) - want).max()
    allowed = 2 * plain + np.finfo(np.float32).eps * np.abs(qkv[2]).max()
    assert error <= allowed, (
        f"out has an error of {error:.2g}; expected at most {allowed:.2g}"
    )


def worked_row() -> None:
    """One head, six keys, scores 1, 3, 2, 5, 4, 0."""
    k = SCORES.astype(np.float32).reshape(6, 1, 1)
    _hold(np.ones((1, 1, 1), np.float32), k, k, scale=1.0)


def one_block() -> None:
    """One head, 128 keys: exactly one block."""
    _hold(*_inputs(128))


def two_blocks() -> None:
    """One head, 256 keys: two full blocks."""
    _hold(*_inputs(256))


def ragged() -> None:
    """One head, 130 keys: a second block of two."""
    _hold(*_inputs(130))


def grouped_heads() -> None:
    """Eight heads over two key and value heads, 128 keys."""
    _hold(*_inputs(128, 8, 2))


def constant_values() -> None:
    """All 256 values are equal, so any weights give them back."""
    q, k, v = _inputs(256)
    _hold(q, k, np.full_like(v, 3))


def hot_scores() -> None:
    """256 keys with scores beyond 100: no exponential may overflow."""
    q, k, v = _inputs(256)
    _hold(40 * q, k, v)


CHECKS = named(
    worked_row,
    one_block,
    two_blocks,
    ragged,
    grouped_heads,
    constant_values,
    hot_scores,
)
