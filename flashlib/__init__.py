"""Flash attention, from softmax to silicon: the code of the book (book).

The public functions take and return NumPy arrays, ``q [seq_q, n_heads,
head_dim]``, ``k [seq_k, n_kv_heads, head_dim]``, ``v [seq_k, n_kv_heads,
head_dim_v]``, and always return ``AttentionOutput(out, lse)``.

Importing this package loads NumPy and nothing else: compilers, plots and
widgets are imported by the modules that need them, when they are asked for.
"""

from flashlib import forks  # noqa: F401 - watches from here on
from flashlib.attention import flash_attention
from flashlib.backends import Backend, Choice, available_backends, get_backend
from flashlib.backends.tracing import Tracing
from flashlib.cache import ContiguousCache, PagedCache, RingCache
from flashlib.decode import flash_attention_decode, flash_attention_paged
from flashlib.errors import (
    ArgumentError,
    BankError,
    CapacityError,
    DTypeError,
    FlashError,
    FreeSizeError,
    MachineError,
    OutOfBoundsError,
    PartitionError,
    PlacementError,
    Refused,
    ShapeError,
    UninitializedError,
)
from flashlib.layout import merge_heads, split_heads
from flashlib.output import AttentionOutput, merge_states
from flashlib.reference import materialized_attention
from flashlib.varlen import flash_attention_varlen

__version__ = "0.1.0"

__all__ = [
    "ArgumentError",
    "AttentionOutput",
    "Backend",
    "BankError",
    "CapacityError",
    "Choice",
    "ContiguousCache",
    "DTypeError",
    "FlashError",
    "FreeSizeError",
    "MachineError",
    "OutOfBoundsError",
    "PagedCache",
    "PartitionError",
    "PlacementError",
    "Refused",
    "RingCache",
    "ShapeError",
    "Tracing",
    "UninitializedError",
    "available_backends",
    "flash_attention",
    "flash_attention_decode",
    "flash_attention_paged",
    "flash_attention_varlen",
    "get_backend",
    "materialized_attention",
    "merge_heads",
    "merge_states",
    "split_heads",
]
