"""Every way to compute attention, for tests that hold for all of them."""

from dataclasses import dataclass

import numpy as np

import flashlib
from flashlib.output import AttentionOutput

TILES = (None, 1, 2, 3, 5, 16)
DTYPES = (np.float32, np.float64)


@dataclass(frozen=True)
class Way:
    """One function, backend, tile and dtype; called like `flash_attention`."""

    backend: str
    tile: int | None
    dtype: type

    def __call__(self, q, k, v, **options) -> AttentionOutput:
        if self.backend == "materialized":
            return flashlib.materialized_attention(q, k, v, **options)
        options = {"tile": self.tile, **options}
        return flashlib.flash_attention(q, k, v, backend=self.backend, **options)

    def col(self, *x):
        """n tokens, one head, width 1."""
        return np.array(x, self.dtype).reshape(-1, 1, 1)

    def zeros(self, n):
        return self.col(*[0] * n)

    def ones(self, n):
        return self.col(*[1] * n)

    def __str__(self):
        tile = "" if self.backend == "materialized" else f"-tile{self.tile}"
        return f"{self.backend}{tile}-{np.dtype(self.dtype).name}"


def ways(tiles=TILES, dtypes=DTYPES):
    """Return the materialized function and every backend that is available here."""
    plain = [Way("materialized", None, dtype) for dtype in dtypes]
    return plain + [
        Way(backend, tile, dtype)
        for backend in flashlib.available_backends()
        for tile in tiles
        for dtype in dtypes
    ]


def same_bits(a: AttentionOutput, b: AttentionOutput) -> bool:
    """Whether two results agree to the bit, NaN included."""
    return all(
        x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()
        for x, y in zip(a, b, strict=True)
    )
