"""Check the inputs of the decode program and name its sizes (chapter 16)."""

import math
from dataclasses import dataclass

import numpy as np

from flashlib.errors import DTypeError, ShapeError
from flashlib.machine.dtypes import BFLOAT16, FLOAT16, FLOAT32
from flashlib.programs.blocks import PARTITIONS

__all__ = ["BANK_COLUMNS", "DTYPES", "TILE_KEYS", "Sizes", "checked_sizes"]

TILE_KEYS = 8192
#: Columns of float32 that one bank of PSUM holds.
BANK_COLUMNS = 512
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
        """Columns per key/value head, c."""
        return self.seq_q * self.group

    @property
    def columns(self) -> int:
        """Columns of all key/value heads, b * c."""
        return self.n_kv_heads * self.width

    @property
    def blocks(self) -> int:
        """Blocks of 128 keys, n."""
        return math.ceil(self.seq_k / PARTITIONS)

    @property
    def per_group(self) -> int:
        """Blocks whose scores share one bank of PSUM: 4,096 keys, or what fits."""
        return min(32, BANK_COLUMNS // self.width)


def checked_sizes(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> Sizes:
    """Check types and shapes; return the sizes.

    Parameters
    ----------
    q : ndarray
        ``[seq_q, n_heads, head_dim]``.
    k : ndarray
        ``[seq_k, n_kv_heads, head_dim]``.
    v : ndarray
        ``[seq_k, n_kv_heads, head_dim_v]``.

    Raises
    ------
    DTypeError
        For types that the program does not multiply, or a mixture of them.
    ShapeError
        For sizes that do not belong together or exceed one tile.
    """
    for name, x in (("q", q), ("k", k), ("v", v)):
        if x.dtype not in DTYPES or x.dtype != q.dtype:
            raise DTypeError(
                f"{name} has dtype {x.dtype.name}; expected float32, float16 or "
                "bfloat16, the same for q, k and v; the tensor engine multiplies "
                "equals; cast it"
            )
        if x.ndim != 3 or min(x.shape) < 1:
            raise ShapeError(
                f"{name} has shape {x.shape}; expected 3 axes of 1 or more; they are "
                "[seq, heads, head_dim]; reshape it"
            )
    _belong_together(q, k, v)
    (seq_q, n_heads, head_dim), (seq_k, n_kv_heads, _) = q.shape, k.shape
    s = Sizes(seq_q, seq_k, n_kv_heads, n_heads // n_kv_heads, head_dim, v.shape[2])
    _fit(s)
    return s


def _belong_together(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> None:
    """Refuse tokens, heads or widths that differ where they have to agree."""
    if k.shape[0] != v.shape[0]:
        raise ShapeError(
            f"k and v have {k.shape[0]} and {v.shape[0]} tokens; expected equal seq_k; "
            "every key has one value; cut the longer one"
        )
    if k.shape[1] != v.shape[1]:
        raise ShapeError(
            f"k and v have {k.shape[1]} and {v.shape[1]} heads; expected equal "
            "n_kv_heads; every key has one value; repeat or drop heads of one"
        )
    if q.shape[2] != k.shape[2]:
        raise ShapeError(
            f"q and k have head_dim {q.shape[2]} and {k.shape[2]}; expected equal "
            "head_dim; a score is their dot product; pad the narrower one with 0"
        )
    if q.shape[1] % k.shape[1] != 0:
        raise ShapeError(
            f"q has {q.shape[1]} heads; expected a multiple of n_kv_heads = "
            f"{k.shape[1]}; every KV head serves a whole group of query heads; pad the "
            "last group"
        )


def _fit(s: Sizes) -> None:
    """Refuse what exceeds the partitions, a bank or the tile."""
    for name in ("head_dim", "head_dim_v"):
        if getattr(s, name) > PARTITIONS:
            raise ShapeError(
                f"{name} has {getattr(s, name)}; expected at most {PARTITIONS}; it "
                "lies on the partitions; wider heads run on the CPU only"
            )
    if s.width > BANK_COLUMNS:
        raise ShapeError(
            f"seq_q * group has {s.width}; expected at most {BANK_COLUMNS}; the "
            "columns of one KV head lie in one bank; ask with fewer queries at a time"
        )
    if s.seq_k > TILE_KEYS:
        raise ShapeError(
            f"seq_k has {s.seq_k}; expected at most {TILE_KEYS}; all keys lie in one "
            "tile; attention_tkg walks longer caches in several"
        )
