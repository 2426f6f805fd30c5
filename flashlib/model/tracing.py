"""Count and time every operation of a forward pass (chapter 10).

The histogram of chapter 10 comes from here. A tracer holds the operations that
it watches and passes every call on, method by method: what is not listed here
is not counted, and a test compares the two lists. It sees all operations of a
model; `flashlib.backends.tracing` sees what one backend is asked.
"""

import time
from collections import Counter
from typing import NamedTuple

import numpy as np

from flashlib.backends import Choice
from flashlib.cache.base import Cache
from flashlib.model.config import Qwen3Config
from flashlib.model.operations import Operations

__all__ = ["Call", "TracingOperations"]


class Call(NamedTuple):
    """One operation that ran.

    Attributes
    ----------
    operation : str
    seconds : float
        Wall clock.
    nbytes : int
        Size of the array that it returned.
    """

    operation: str
    seconds: float
    nbytes: int


class TracingOperations(Operations):
    """Pass every operation on, and write down that it ran.

    Parameters
    ----------
    inner : Operations
        What does the work.

    Attributes
    ----------
    calls : list of Call
        In the order in which they ran.

    Examples
    --------
    >>> watched = TracingOperations(Operations("numpy"))
    >>> watched.add(np.ones(2), np.ones(2))
    array([2., 2.])
    >>> watched.counts
    Counter({'add': 1})
    """

    def __init__(self, inner: Operations):
        super().__init__(
            inner.backend,
            inner.algorithm,
            tile=inner.tile,
            num_splits=inner.num_splits,
        )
        self.inner = inner
        self.calls: list[Call] = []

    @property
    def counts(self) -> Counter[str]:
        """Calls of every operation."""
        return Counter(call.operation for call in self.calls)

    @property
    def seconds(self) -> dict[str, float]:
        """Wall clock of every operation, summed."""
        total: dict[str, float] = {}
        for call in self.calls:
            total[call.operation] = total.get(call.operation, 0.0) + call.seconds
        return total

    def _run(self, operation: str, *arguments: object) -> np.ndarray | None:
        began = time.perf_counter()
        result = getattr(self.inner, operation)(*arguments)
        seconds = time.perf_counter() - began
        self.calls.append(Call(operation, seconds, getattr(result, "nbytes", 0)))
        return result

    def choice(
        self, config: Qwen3Config, seq: int, window: int | None, dtype: np.dtype
    ) -> Choice:
        """Ask the inner operations; nothing is computed, so nothing is counted."""
        return self.inner.choice(config, seq, window, dtype)

    def embedding(self, table: np.ndarray, token_ids: np.ndarray) -> np.ndarray:
        return self._run("embedding", table, token_ids)

    def matmul(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return self._run("matmul", a, b)

    def add(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return self._run("add", a, b)

    def rms_norm(self, x: np.ndarray, weight: np.ndarray, eps: float) -> np.ndarray:
        return self._run("rms_norm", x, weight, eps)

    def head_norm(
        self, x: np.ndarray, weight: np.ndarray, eps: float, n_heads: int
    ) -> np.ndarray:
        return self._run("head_norm", x, weight, eps, n_heads)

    def rope(
        self, x: np.ndarray, cos: np.ndarray, sin: np.ndarray, n_heads: int
    ) -> np.ndarray:
        return self._run("rope", x, cos, sin, n_heads)

    def swiglu(self, gate: np.ndarray, up: np.ndarray) -> np.ndarray:
        return self._run("swiglu", gate, up)

    def flash_attention_prefill(
        self,
        q: np.ndarray,
        k: np.ndarray,
        v: np.ndarray,
        config: Qwen3Config,
        window: int | None,
    ) -> np.ndarray:
        return self._run("flash_attention_prefill", q, k, v, config, window)

    def fused_attention(
        self, q: np.ndarray, cache: Cache, config: Qwen3Config
    ) -> np.ndarray:
        return self._run("fused_attention", q, cache, config)

    def copy_2d_from_cols(self, x: np.ndarray, width: int, start: int) -> np.ndarray:
        return self._run("copy_2d_from_cols", x, width, start)

    def transpose_2d(self, x: np.ndarray) -> np.ndarray:
        return self._run("transpose_2d", x)

    def scale(self, x: np.ndarray, factor: float) -> np.ndarray:
        return self._run("scale", x, factor)

    def fill_strict_upper_tri(self, x: np.ndarray, value: float) -> np.ndarray:
        return self._run("fill_strict_upper_tri", x, value)

    def softmax_rows(self, x: np.ndarray) -> np.ndarray:
        return self._run("softmax_rows", x)

    def copy_2d_into_cols(self, out: np.ndarray, x: np.ndarray, start: int) -> None:
        self._run("copy_2d_into_cols", out, x, start)
