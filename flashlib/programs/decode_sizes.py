"""Check the inputs of the decode program and name its sizes (chapter 16)."""

import math
from dataclasses import dataclass

import numpy as np

from flashlib.errors import DTypeError, ShapeError
from flashlib.machine.dtypes import BFLOAT16, FLOAT16, FLOAT32
from flashlib.programs.blocks import LANES

TILE_KEYS = 8192
DTYPES = (FLOAT32, FLOAT16, BFLOAT16)


@dataclass(frozen=True)
class Sizes:
    """Sizes of one call; ``columns`` is b * c, ``blocks`` is n."""

    seq_q: int
    seq_k: int
    n_kv_heads: int
    group: int
    head_dim: int
    head_dim_v: int

    @property
    def width(self) -> int:
        return self.seq_q * self.group

    @property
    def columns(self) -> int:
        return self.n_kv_heads * self.width

    @property
    def blocks(self) -> int:
        return math.ceil(self.seq_k / LANES)

    @property
    def per_group(self) -> int:
        """Blocks whose scores share one bank of PSUM: 4,096 keys, or what fits."""
        return min(32, 512 // self.width)


def checked_sizes(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> Sizes:
    """Check types and shapes; return the sizes."""
    for name, x in (("q", q), ("k", k), ("v", v)):
        if x.dtype not in DTYPES or x.dtype != q.dtype:
            raise DTypeError(
                f"{name} is {x.dtype.name}; expected float32, float16 or bfloat16, the "
                "same for q, k and v; the tensor engine multiplies equals; cast it"
            )
        if x.ndim != 3 or min(x.shape) < 1:
            raise ShapeError(
                f"{name} has shape {x.shape}; expected 3 axes of 1 or more; "
                "[seq, heads, head_dim]"
            )
    (seq_q, n_heads, head_dim), (seq_k, n_kv_heads, _) = q.shape, k.shape
    if k.shape[:2] != v.shape[:2] or k.shape[2] != head_dim or n_heads % n_kv_heads:
        raise ShapeError(
            f"q, k, v have shapes {q.shape}, {k.shape}, {v.shape}; expected equal "
            "seq_k and n_kv_heads, equal head_dim, n_heads a multiple of n_kv_heads"
        )
    s = Sizes(seq_q, seq_k, n_kv_heads, n_heads // n_kv_heads, head_dim, v.shape[2])
    if max(head_dim, s.head_dim_v) > LANES or s.width > 512 or seq_k > TILE_KEYS:
        raise ShapeError(
            f"head_dim {head_dim}, head_dim_v {s.head_dim_v}, seq_q * group {s.width}, "
            f"seq_k {seq_k}; expected at most 128, 128, 512, {TILE_KEYS}; head_dim "
            "lies on partitions, columns in one bank, keys in one tile"
        )
    return s
