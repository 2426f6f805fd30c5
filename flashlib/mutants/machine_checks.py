"""What a decode program has to get right, check by check (chapters 15, 16, 17)."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

import numpy as np

from flashlib.reference import materialized_attention

Program = Callable[..., np.ndarray]
ROW_SCORES = np.array([1, 3, 2, 5, 4, 0], np.float32)


def _inputs(
    seq_k: int, n_heads: int = 1, n_kv_heads: int = 1, width: int = 16
) -> list[np.ndarray]:
    rng = np.random.default_rng(seq_k)
    shapes = (1, n_heads, width), (seq_k, n_kv_heads, width), (seq_k, n_kv_heads, width)
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


def _hold(program: Program, *qkv: np.ndarray, scale: float | None = None) -> None:
    """Allow twice the error of plain float32 attention and one unit, not NaN."""
    got = program(*qkv, scale=scale)
    want = materialized_attention(*qkv, scale=scale, dtype=np.float64).out
    plain = np.abs(materialized_attention(*qkv, scale=scale).out - want).max()
    error = np.abs(got.astype(np.float64) - want).max()
    allowed = 2 * plain + np.finfo(np.float32).eps * np.abs(qkv[2]).max()
    assert error <= allowed, f"error is {error:.2g}; expected at most {allowed:.2g}"


def worked_row(program: Program) -> None:
    """One head, six keys, scores 1, 3, 2, 5, 4, 0."""
    k = ROW_SCORES.reshape(6, 1, 1)
    _hold(program, np.ones((1, 1, 1), np.float32), k, k, scale=1.0)


def one_block(program: Program) -> None:
    """One head, 128 keys: exactly one block."""
    _hold(program, *_inputs(128))


def two_blocks(program: Program) -> None:
    """One head, 256 keys: two full blocks."""
    _hold(program, *_inputs(256))


def ragged(program: Program) -> None:
    """One head, 130 keys: a second block of two."""
    _hold(program, *_inputs(130))


def grouped_heads(program: Program) -> None:
    """Eight heads over two key and value heads, 128 keys."""
    _hold(program, *_inputs(128, 8, 2))


def constant_values(program: Program) -> None:
    """All 256 values are equal, so any weights give them back."""
    q, k, v = _inputs(256)
    _hold(program, q, k, np.full_like(v, 3))


def hot_scores(program: Program) -> None:
    """256 keys with scores beyond 100: no exponential may overflow."""
    q, k, v = _inputs(256)
    _hold(program, 40 * q, k, v)


CHECKS = MappingProxyType(
    {
        check.__name__: check
        for check in (
            worked_row,
            one_block,
            two_blocks,
            ragged,
            grouped_heads,
            constant_values,
            hot_scores,
        )
    }
)


def failures(program: Program) -> dict[str, str]:
    """Run every check and return the message of each that fails."""
    found = {}
    for name, check in CHECKS.items():
        try:
            check(program)
        except AssertionError as error:
            found[name] = str(error)
    return found
