"""Refuse what the decode kernel cannot run, before its first instruction (chapter 21).

The kernel asserts most of this when it is compiled; a few limits of ours stand
beside: heads times queries in one bank, queries on the partitions of one fold, and
page numbers that exist.
"""

from dataclasses import fields

import numpy as np

from flashlib.errors import ArgumentError, DTypeError, ShapeError, shown
from flashlib.machine.dtypes import BFLOAT16, FLOAT8, FLOAT32
from flashlib.machine.spec import Spec
from flashlib.programs.blocks import PARTITIONS
from flashlib.programs.refusals import check_flags, check_whole
from flashlib.programs.tkg.config import TkgConfig
from flashlib.programs.tkg.sizes import GROUP_COLUMNS, TILE_BYTES, TkgSizes

__all__ = [
    "ROPE_SLOTS",
    "check_config",
    "check_kinds",
    "check_limits",
    "check_pages",
    "check_room",
    "check_slots",
    "check_tiling",
    "check_types",
    "positive",
]

ROPE_SLOTS = 2**17


def positive(**sizes: int) -> None:
    """Every size is 1 or more."""
    for name, size in sizes.items():
        if size < 1:
            raise ShapeError(
                f"{name} has {size}; expected 1 or more; the machine has no empty "
                "tensors; leave an empty call out"
            )


def check_kinds(config: TkgConfig) -> None:
    """Switches are bools and sizes are integers."""
    if not isinstance(config, TkgConfig):
        raise ArgumentError(
            f"config has {shown(config)}; expected a TkgConfig; it fixes the kernel; "
            "pass TkgConfig(curr_sprior=..., full_sprior=...)"
        )
    for field in fields(TkgConfig):
        check = check_flags if field.type is bool else check_whole
        check(**{field.name: getattr(config, field.name)})


def check_tiling(config: TkgConfig) -> None:
    """Numbers of slots that do not depend on the arrays."""
    check_kinds(config)
    positive(curr_sprior=config.curr_sprior, full_sprior=config.full_sprior)
    if config.curr_sprior > config.full_sprior:
        raise ShapeError(
            f"curr_sprior has {config.curr_sprior}; expected at most full_sprior, "
            f"{config.full_sprior}; the cache has no more slots; raise full_sprior"
        )
    limit = config.fa_tile_s_prior
    if limit < PARTITIONS or limit % PARTITIONS != 0:
        raise ShapeError(
            f"fa_tile_s_prior has {limit}; expected a positive multiple of 128; a tile "
            "fills the partitions; round it up"
        )
    if config.block_len < 0:
        raise ShapeError(
            f"block_len has {config.block_len}; expected 0 or more; 0 means a flat "
            "cache; leave it out for a flat cache"
        )


def check_config(config: TkgConfig) -> None:
    """Switches that do not depend on the arrays."""
    check_tiling(config)
    if not config.fuse_rope and not config.qk_in_sb:
        raise ShapeError(
            "fuse_rope and qk_in_sb have False; expected True for one of them; without "
            "the fused rotation q and the active k arrive on chip; set qk_in_sb"
        )
    if config.fuse_rope and config.curr_sprior > ROPE_SLOTS:
        raise ShapeError(
            f"curr_sprior has {config.curr_sprior} with fuse_rope; expected at most "
            f"{ROPE_SLOTS}; beyond, float32 angles are too coarse; rotate outside"
        )


def check_types(q: np.dtype, tensors: dict[str, np.dtype], fuse_rope: bool) -> None:
    """Types of q and of the four tensors of keys and values."""
    types = {t.name for t in (FLOAT32, BFLOAT16, FLOAT8)}
    for name, dtype in {"q": q, **tensors}.items():
        if dtype.name not in types:
            raise DTypeError(
                f"{name} has dtype {dtype.name}; expected float32, bfloat16 or "
                "float8_e4m3; the kernel computes in no other type; cast it"
            )
    first = tensors["k_prior"]
    for name, dtype in tensors.items():
        if dtype != first:
            raise DTypeError(
                f"{name} has dtype {dtype.name}; expected {first.name} like k_prior; "
                "keys and values, cached and active, share one type"
            )
    same = q in (BFLOAT16, FLOAT8) if first == FLOAT8 else q == first
    if not same:
        raise DTypeError(
            f"q has dtype {q.name} with {first.name} keys; expected "
            f"{first.name}{' or bfloat16' if first == FLOAT8 else ''}; the tensor "
            "engine does not mix float32 with narrower types; cast q"
        )
    if first == FLOAT8 and fuse_rope:
        raise DTypeError(
            "fuse_rope has True with float8_e4m3 keys; expected False; the rotation "
            "needs a wider type; rotate outside and set qk_in_sb"
        )


def check_limits(s: TkgSizes, config: TkgConfig) -> None:
    """Limits of partitions, banks and tiles."""
    if s.head_dim > PARTITIONS:
        raise ShapeError(
            f"head_dim has {s.head_dim}; expected at most 128; it lies on the "
            "partitions; wider heads run on the CPU only"
        )
    if s.width > GROUP_COLUMNS:
        raise ShapeError(
            f"n_heads * seq has {s.n_heads} * {s.seq} = {s.width}; expected at most "
            "512; the columns of one item share a bank of psum; split the heads"
        )
    check_slots(s)
    need = 8 * s.width * s.tiles[0]
    if need > TILE_BYTES:
        raise ShapeError(
            f"8 * n_heads * seq * tile has 8 * {s.width} * {s.tiles[0]} = {need}; "
            f"expected at most {TILE_BYTES}; scores of one item stay on chip; use "
            "fewer heads or a smaller fa_tile_s_prior"
        )
    if config.fuse_rope:
        _check_rope(s)


def check_slots(s: TkgSizes) -> None:
    """Slots fill the partitions of every core; the active tokens fit at the end.

    At most 128 of them fit into any tile, and into the last fold of any block length.
    """
    if s.seq > PARTITIONS:
        raise ShapeError(
            f"seq has {s.seq}; expected at most 128; active rows lie on the "
            "partitions; append fewer tokens per call"
        )
    if s.slots % (s.slot_cores * PARTITIONS) != 0:
        raise ShapeError(
            f"curr_sprior has {s.slots} on {s.slot_cores} sharing cores; expected a "
            f"multiple of {s.slot_cores * PARTITIONS}; every core fills its "
            "partitions; pad the cache"
        )


def _check_rope(s: TkgSizes) -> None:
    """The fused rotation handles all columns at once, on one core or on both."""
    columns = s.batch * s.width
    if columns > PARTITIONS:
        raise ShapeError(
            f"batch * n_heads * seq has {columns} with fuse_rope; expected at most "
            "128; all columns are rotated at once; rotate outside and set qk_in_sb"
        )
    if s.head_dim % 64 != 0:
        raise ShapeError(
            f"head_dim has {s.head_dim} with fuse_rope; expected 64 or 128; the halves "
            "start at partition 32 or 64; rotate outside and set qk_in_sb"
        )
    if s.batch_sharded:
        raise ShapeError(
            f"batch has {s.batch} items, shared by two cores with fuse_rope; expected "
            "shared slots; every core rotates all columns; use lnc=1 or rotate outside"
        )


def check_pages(s: TkgSizes, config: TkgConfig) -> None:
    """What paging needs of switches and block lengths."""
    wanted = {"strided_mm1": False, "tp_k_prior": True, "qk_in_sb": True}
    for name, value in wanted.items():
        found = getattr(config, name)
        if found != value:
            raise ShapeError(
                f"{name} has {found} with pages; expected {value}; pages are "
                "[block_len, head_dim], gathered in order, with q on chip; set "
                f"{name}={value}"
            )
    if s.block_len > 8 and s.block_len % 8 != 0:
        raise ShapeError(
            f"block_len has {s.block_len} after resizing; expected 8 or less, or a "
            "multiple of 8; blocks are transposed in eights; choose another block_len"
        )


def check_room(s: TkgSizes, spec: Spec, io: int, kv: int, hardened: bool) -> None:
    """All buffers of one tile fit on chip."""
    need = s.sbuf_bytes(io, kv, hardened)
    if need > spec.sbuf_bytes_per_partition:
        raise ShapeError(
            f"a tile of {s.tiles[0]} slots has buffers of about {need} bytes per "
            f"partition; expected at most {spec.sbuf_bytes_per_partition}; scores, "
            "keys and values of one tile stay on chip; use a smaller fa_tile_s_prior"
        )
