"""Count and time what a backend is asked to do (chapter 10)."""

import time
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from flashlib.backends.base import Backend, Choice
from flashlib.chains import DEFAULT_TILE
from flashlib.errors import ArgumentError, shown
from flashlib.output import AttentionOutput
from flashlib.problem import Problem

__all__ = ["Call", "Tracing"]


class Call(NamedTuple):
    """One operation that a backend ran.

    Attributes
    ----------
    operation : str
        The method of :class:`~flashlib.Backend` that was called, such as
        ``"choose"`` or ``"prefill"``.
    seconds : float
        Wall time.
    problem : Problem
        What it was asked for.
    """

    operation: str
    seconds: float
    problem: Problem


class Tracing(Backend):
    """Wrap a backend: the same answers, and a list of what was asked.

    Every method is handed on by name, so that what is traced can be read here, and
    none answers for `inner`. Nothing is traced twice when one operation of `inner`
    uses another.

    Parameters
    ----------
    inner : Backend
        An instance.

    Examples
    --------
    >>> from flashlib import flash_attention, get_backend
    >>> traced = Tracing(get_backend("numpy"))
    >>> x = np.ones((2, 1, 1))
    >>> _ = flash_attention(x, x, x, backend=traced)
    >>> traced.counts
    {'choose': 1, 'prefill': 1}
    """

    def __init__(self, inner: Backend):
        if not isinstance(inner, Backend):
            raise ArgumentError(
                f"inner has {shown(inner)}; expected a Backend instance; "
                "get_backend(name) returns one"
            )
        self.inner = inner
        self.name = f"tracing {inner.name}"
        self.calls: list[Call] = []

    @property
    def counts(self) -> dict[str, int]:
        """How often each operation ran."""
        return dict(Counter(call.operation for call in self.calls))

    @property
    def seconds(self) -> dict[str, float]:
        """How long each operation ran in all."""
        totals: dict[str, float] = {}
        for call in self.calls:
            totals[call.operation] = totals.get(call.operation, 0.0) + call.seconds
        return totals

    def refusal(self, problem: Problem, algorithm: str) -> str | None:
        """Return what `inner` says."""
        return self.inner.refusal(problem, algorithm)

    def preferred(self, problem: Problem) -> Choice:
        """Return what `inner` says."""
        return self.inner.preferred(problem)

    def choose(self, problem: Problem, algorithm: str = "auto") -> Choice:
        """Choose as `inner` does."""
        return self._timed("choose", problem, self.inner.choose, algorithm)

    def prefill(
        self,
        problem: Problem,
        q: np.ndarray,
        k: np.ndarray,
        v: np.ndarray,
        *,
        algorithm: str,
        tile: int = DEFAULT_TILE,
    ) -> AttentionOutput:
        """Run the prefill of `inner`."""
        options = {"algorithm": algorithm, "tile": tile}
        return self._timed("prefill", problem, self.inner.prefill, q, k, v, **options)

    def materialized(
        self, problem: Problem, q: np.ndarray, k: np.ndarray, v: np.ndarray
    ) -> AttentionOutput:
        """Run the score matrix of `inner`."""
        return self._timed("materialized", problem, self.inner.materialized, q, k, v)

    def flash(
        self, problem: Problem, q: np.ndarray, k: np.ndarray, v: np.ndarray, tile: int
    ) -> AttentionOutput:
        """Run the tiles of `inner`."""
        return self._timed("flash", problem, self.inner.flash, q, k, v, tile)

    def decode(
        self,
        problem: Problem,
        q: np.ndarray,
        k_cache: np.ndarray,
        v_cache: np.ndarray,
        cache_seqlens: np.ndarray,
        num_splits: int | None = None,
    ) -> AttentionOutput:
        """Run the decode of `inner`."""
        tensors = (q, k_cache, v_cache, cache_seqlens, num_splits)
        return self._timed("decode", problem, self.inner.decode, *tensors)

    def paged(
        self,
        problem: Problem,
        q: np.ndarray,
        k_pages: np.ndarray,
        v_pages: np.ndarray,
        block_table: np.ndarray,
        cache_seqlens: np.ndarray,
        num_splits: int | None = None,
    ) -> AttentionOutput:
        """Run the paged decode of `inner`."""
        tensors = (q, k_pages, v_pages, block_table, cache_seqlens, num_splits)
        return self._timed("paged", problem, self.inner.paged, *tensors)

    def varlen(
        self,
        problem: Problem,
        q: np.ndarray,
        k: np.ndarray,
        v: np.ndarray,
        segments: np.ndarray,
    ) -> AttentionOutput:
        """Run the packed batch of `inner`."""
        return self._timed("varlen", problem, self.inner.varlen, q, k, v, segments)

    def in_parts(
        self,
        problem: Problem,
        q: np.ndarray,
        k: np.ndarray,
        v: np.ndarray,
        num_splits: int,
    ) -> AttentionOutput:
        """Run the parts of `inner`."""
        tensors = (q, k, v, num_splits)
        return self._timed("in_parts", problem, self.inner.in_parts, *tensors)

    def _timed(
        self, operation: str, problem: Problem, run: Callable, *arguments, **options
    ):
        start = time.perf_counter()
        result = run(problem, *arguments, **options)
        seconds = time.perf_counter() - start
        self.calls.append(Call(operation, seconds, problem))
        return result
