"""Check the arrays of a decode call against each other (chapter 21)."""

from dataclasses import dataclass

import numpy as np

from flashlib.errors import ArgumentError, DTypeError, ShapeError
from flashlib.machine.spec import Spec
from flashlib.programs.refusals import check_core, check_flags, check_sink
from flashlib.programs.tkg import checks
from flashlib.programs.tkg.config import TkgConfig
from flashlib.programs.tkg.sizes import TkgSizes, sizes_of

__all__ = ["TkgOperands", "check_call", "check_mask", "check_positions", "expect"]


@dataclass(frozen=True)
class TkgOperands:
    """The arrays of one call, checked and in the types that the kernel loads."""

    q: np.ndarray
    k_active: np.ndarray
    v_active: np.ndarray
    k_prior: np.ndarray
    v_prior: np.ndarray
    mask: np.ndarray | None
    active_mask: np.ndarray | None
    pos_ids: np.ndarray | None
    start_pos_ids: np.ndarray | None
    table: np.ndarray | None
    sink: np.ndarray | None
    inv_freqs: np.ndarray | None
    rope_pos_ids: np.ndarray | None


def check_call(
    x: TkgOperands, config: TkgConfig, lnc: int, spec: Spec, hardened: bool
) -> TkgSizes:
    """Check everything that can be known before the first instruction."""
    check_core(spec, lnc)
    check_flags(hardened=hardened)
    checks.check_config(config)
    names = ("k_active", "v_active", "k_prior", "v_prior")
    types = {name: getattr(x, name).dtype for name in names}
    checks.check_types(x.q.dtype, types, config.fuse_rope)
    batch, n_heads, seq, head_dim = _query_sizes(x, config)
    page = _page(x, config)
    s = sizes_of(batch, n_heads, seq, head_dim, config, lnc, page)
    checks.check_limits(s, config)
    if s.paged:
        checks.check_pages(s, config)
    _check_cache(x, s, config)
    _check_masking(x, s, config)
    _check_rotation(x, s, config)
    if x.sink is not None:
        expect("sink", x.sink, (n_heads, 1), "one value per head", np.float32)
        check_sink(x.sink)
    checks.check_room(s, spec, x.q.itemsize, x.k_prior.itemsize, hardened)
    return s


def expect(
    name: str, array: np.ndarray, shape: tuple, why: str, dtype: object = None
) -> None:
    """An array has exactly this shape, and this type if one is given."""
    if array.shape != shape:
        raise ShapeError(
            f"{name} has shape {array.shape}; expected {shape}; {why}; reshape or cut "
            "it"
        )
    if dtype is not None and array.dtype != dtype:
        raise DTypeError(
            f"{name} has dtype {array.dtype.name}; expected {np.dtype(dtype).name}; "
            f"{why}; cast it"
        )


def _query_sizes(x: TkgOperands, config: TkgConfig) -> tuple[int, int, int, int]:
    """Read batch, n_heads, seq and head_dim off q and the active rows."""
    v = x.v_active
    if v.ndim != 4 or v.shape[1] != 1:
        raise ShapeError(
            f"v_active has shape {v.shape}; expected [batch, 1, seq, head_dim]; one "
            "key/value head per call; call once per key/value head"
        )
    batch, _, seq, head_dim = v.shape
    checks.positive(batch=batch, seq=seq, head_dim=head_dim)
    if not config.qk_in_sb:
        heads = x.q.shape[1] if x.q.ndim == 4 else 0
        expect("q", x.q, (batch, heads, seq, head_dim), "[batch, n_heads, seq, d]")
        expect("k_active", x.k_active, v.shape, "the shape of v_active")
    else:
        columns = x.q.shape[1] if x.q.ndim == 2 else 0
        heads = columns // (batch * seq)
        shape = (head_dim, batch * heads * seq)
        expect("q", x.q, shape, "[head_dim, batch * n_heads * seq] with qk_in_sb")
        shape = (head_dim, batch * seq)
        expect("k_active", x.k_active, shape, "[head_dim, batch * seq] with qk_in_sb")
    checks.positive(n_heads=heads)
    return batch, heads, seq, head_dim


def _page(x: TkgOperands, config: TkgConfig) -> int:
    """Length of a page, 0 for a flat cache."""
    if x.table is None:
        if config.block_len != 0:
            raise ShapeError(
                f"block_len has {config.block_len} without active_blocks_table; "
                "expected 0; pages are found through the table; pass it"
            )
        return 0
    k = x.k_prior
    if k.ndim != 3 or min(k.shape) < 1:
        raise ShapeError(
            f"k_prior has shape {k.shape} with active_blocks_table; expected "
            "[num_blocks, block_len, head_dim]; pages are found through the table; cut "
            "the cache into pages"
        )
    if config.block_len not in (0, k.shape[1]):
        raise ShapeError(
            f"block_len has {config.block_len}; expected {k.shape[1]}, axis 1 of "
            f"k_prior of shape {k.shape}; a page holds block_len slots; set "
            f"block_len={k.shape[1]}"
        )
    return k.shape[1]


def _check_cache(x: TkgOperands, s: TkgSizes, config: TkgConfig) -> None:
    """Shapes of the cached keys and values, and of the page table."""
    if s.paged:
        shape = (x.k_prior.shape[0], s.page, s.head_dim)
        expect("k_prior", x.k_prior, shape, "[num_blocks, block_len, head_dim]")
        expect("v_prior", x.v_prior, shape, "the shape of k_prior")
        _check_table(x.table, s)
        return
    for name, array in (("k_prior", x.k_prior), ("v_prior", x.v_prior)):
        tall = name == "v_prior" or config.tp_k_prior
        tail = (config.full_sprior, s.head_dim)
        items = max(s.batch, array.shape[0] if array.ndim else 0)
        shape = (items, 1, *(tail if tall else tail[::-1]))
        axes = "full_sprior, head_dim" if tall else "head_dim, full_sprior"
        expect(name, array, shape, f"[batch or more, 1, {axes}]")


def _check_table(table: np.ndarray, s: TkgSizes) -> None:
    if table.dtype.kind not in "iu":
        raise DTypeError(
            f"active_blocks_table has dtype {table.dtype.name}; expected an integer "
            "type; it holds page numbers; cast it"
        )
    columns = table.shape[1] if table.ndim == 2 else 0
    if table.ndim != 2 or table.shape[0] != s.batch or columns * s.page != s.slots:
        raise ShapeError(
            f"active_blocks_table has shape {table.shape}; expected ({s.batch}, "
            f"{s.slots}/{s.page}); its pages hold curr_sprior slots; pad it with 0"
        )


def _check_masking(x: TkgOperands, s: TkgSizes, config: TkgConfig) -> None:
    """Either positions and an optional active mask, or a whole mask."""
    inside = {"active_mask": x.active_mask, "start_pos_ids": x.start_pos_ids}
    for name, array in inside.items():
        if array is not None and not config.use_pos_id:
            raise ShapeError(
                f"{name} has an array without use_pos_id; expected None; a given mask "
                "is all the masking there is; set use_pos_id"
            )
    if (x.mask is None) != config.use_pos_id:
        raise ShapeError(
            f"mask has {'None' if x.mask is None else 'an array'} with use_pos_id "
            f"{config.use_pos_id}; expected one of the two; the kernel builds a mask "
            "from pos_ids, or loads one; pass mask or set use_pos_id"
        )
    if config.use_pos_id and x.pos_ids is None:
        raise ShapeError(
            "pos_ids has None with use_pos_id; expected [batch, seq]; the mask is "
            "built from positions; pass pos_ids"
        )
    for name in ("pos_ids", "start_pos_ids", "rope_pos_ids"):
        check_positions(name, getattr(x, name), s)
    columns = (s.batch, s.n_heads, s.seq)
    for name, first in (("mask", s.slots), ("active_mask", s.seq)):
        check_mask(name, getattr(x, name), (first, *columns))


def check_positions(name: str, array: np.ndarray | None, s: TkgSizes) -> None:
    """Positions are whole numbers, one per query."""
    if array is None:
        return
    expect(name, array, (s.batch, s.seq), "[batch, seq]")
    if array.dtype.kind not in "iu" and array.dtype != np.float32:
        raise DTypeError(
            f"{name} has dtype {array.dtype.name}; expected an integer type or "
            "float32; positions are compared in float32; cast it"
        )
    if array.dtype == np.float32:
        found = array[~np.isfinite(array) | (array != np.rint(array))]
        if found.size > 0:
            raise ArgumentError(
                f"{name} has {found[:1].tolist()}; expected whole numbers; a position "
                "is the number of a slot; pass integers"
            )


def check_mask(name: str, array: np.ndarray | None, shape: tuple) -> None:
    """A mask has one flag per key and query."""
    if array is None:
        return
    expect(name, array, shape, "[keys, batch, n_heads, seq]")
    if array.dtype not in (np.dtype(bool), np.dtype(np.uint8), np.dtype(np.float32)):
        raise DTypeError(
            f"{name} has dtype {array.dtype.name}; expected bool, uint8 or float32; 1 "
            "is attend; cast it"
        )
    found = array[(array != 0) & (array != 1)]
    if found.size > 0:
        raise ArgumentError(
            f"{name} has {found[:1].tolist()}; expected 0 and 1 only; 1 is attend, and "
            "a mask is no bias; pass mask == 0 for a mask that is added (0 and -inf), "
            "mask != 0 for flags"
        )


def _check_rotation(x: TkgOperands, s: TkgSizes, config: TkgConfig) -> None:
    if not config.fuse_rope:
        return
    if x.rope_pos_ids is None and x.pos_ids is None:
        raise ShapeError(
            "rope_pos_ids and pos_ids have None with fuse_rope; expected one of them, "
            "[batch, seq]; angles come from positions; pass pos_ids"
        )
    if x.inv_freqs is None:
        raise ShapeError(
            "inv_freqs has None with fuse_rope; expected [head_dim / 2, 1]; angles are "
            "frequency times position; pass inv_freqs"
        )
    shape = (s.head_dim // 2, 1)
    expect("inv_freqs", x.inv_freqs, shape, "one frequency per pair", np.float32)
