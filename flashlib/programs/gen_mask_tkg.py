"""Generate decode masks on chip or in HBM, in the order of the kernel (chapter 18)."""

from typing import NamedTuple

import numpy as np

from flashlib.errors import ArgumentError, ShapeError, shown
from flashlib.machine.dtypes import as_dtype
from flashlib.machine.machine import Machine
from flashlib.machine.pair import CorePair
from flashlib.machine.spec import NC_V3, Spec
from flashlib.machine.trace import Trace
from flashlib.programs.blocks import PARTITIONS
from flashlib.programs.masks.kernel import MaskRun, mask_in_hbm, mask_in_sbuf
from flashlib.programs.refusals import (
    as_array,
    check_core,
    check_flags,
    check_whole,
    optional_array,
)
from flashlib.programs.tkg import checks
from flashlib.programs.tkg.config import TkgConfig
from flashlib.programs.tkg.operands import check_mask, check_positions
from flashlib.programs.tkg.sizes import TkgSizes, sizes_of

__all__ = ["LAYOUTS", "GenMaskResult", "gen_mask_tkg"]

LAYOUTS = ("sbuf", "hbm")


class GenMaskResult(NamedTuple):
    """The mask, 1 = attend, and one trace per core.

    "sbuf": ``[128, n, batch, n_heads, seq]``, with two cores one more axis in front;
    "hbm": ``[curr_sprior, batch, n_heads, seq]``.
    """

    mask: np.ndarray
    traces: tuple[Trace, ...]


def gen_mask_tkg(
    pos_ids: np.ndarray,
    *,
    config: TkgConfig,
    n_heads: int,
    start_pos_ids: np.ndarray | None = None,
    active_mask: np.ndarray | None = None,
    s_prior_offset: int = 0,
    s_prior_tile: int | None = None,
    layout: str = "sbuf",
    dtype: object = np.float32,
    spec: Spec = NC_V3,
    lnc: int = 1,
    hardened: bool = False,
) -> GenMaskResult:
    """Generate the mask of one tile on chip, or of the whole cache in HBM.

    Parameters
    ----------
    pos_ids : ndarray
        ``[batch, seq]`` positions: slots below are attended, counted by column 0
        without a window.
    config : TkgConfig
        Its curr_sprior, strided_mm1, block_len and tiling count.
    n_heads : int
    start_pos_ids : ndarray, optional
        ``[batch, seq]``: the window [start, pos) per query; start > pos wraps.
    active_mask : ndarray, optional
        ``[seq (key), batch, n_heads, seq (query)]``, copied over the last slots: on
        chip of every core's tile, in HBM of the cache.
    s_prior_offset, s_prior_tile : int
        Part of each core's slots, on chip only; all of them unless given.
    layout : str
        "sbuf" or "hbm". In HBM row ``f * 128 + p`` belongs to partition p, free
        position f; a flat cache is strided over all its slots, however many cores
        share them.
    dtype : dtype
        Type of the mask.
    spec : Spec
    lnc : int
    hardened : bool
        Clamp the end of every window to the position of the first query.

    Returns
    -------
    GenMaskResult

    Raises
    ------
    ShapeError, DTypeError, ArgumentError, MachineError
        Before the first instruction.

    Examples
    --------
    >>> config = TkgConfig(curr_sprior=256, full_sprior=256)
    >>> mask = gen_mask_tkg(np.array([[3]]), config=config, n_heads=1).mask
    >>> mask.shape, mask[:3, :, 0, 0, 0].tolist()
    ((128, 2, 1, 1, 1), [[1.0, 1.0], [1.0, 0.0], [0.0, 0.0]])
    """
    pos = as_array("pos_ids", pos_ids)
    start = optional_array("start_pos_ids", start_pos_ids)
    active = optional_array("active_mask", active_mask)
    check_flags(hardened=hardened)
    s = _checked(pos, start, active, config, n_heads, spec, lnc)
    tile = _checked_tile(s, s_prior_offset, s_prior_tile, layout)

    pair = CorePair(spec) if lnc == 2 else None
    cores = pair.cores if pair else (Machine(spec),)
    hbm = {"end": cores[0].hbm.put(pos.astype(np.float32))}
    if start is not None:
        hbm["start"] = cores[0].hbm.put(start.astype(np.float32))
    if active is not None:
        flags = active.view(np.uint8) if active.dtype == bool else active
        hbm["active"] = cores[0].hbm.put(flags)
    out = None
    if layout == "hbm":
        out = cores[0].hbm.alloc((s.slots, s.batch, n_heads, s.seq), as_dtype(dtype))

    def program(m: Machine):
        run = MaskRun(m, s, hbm, as_dtype(dtype), hardened)
        if out is None:
            return mask_in_sbuf(run, s_prior_offset, tile)
        return mask_in_hbm(run, out)

    masks = pair.run(program) if pair else (program(cores[0]),)
    traces = tuple(m.trace for m in cores)
    if out is not None:
        return GenMaskResult(out.numpy(), traces)
    return GenMaskResult(np.stack(masks) if pair else masks[0], traces)


def _checked(
    pos: np.ndarray,
    start: np.ndarray | None,
    active: np.ndarray | None,
    config: TkgConfig,
    n_heads: int,
    spec: Spec,
    lnc: int,
) -> TkgSizes:
    """Check arrays and sizes; return the sizes."""
    check_core(spec, lnc)
    check_whole(n_heads=n_heads)
    if pos.ndim != 2:
        raise ShapeError(
            f"pos_ids has shape {pos.shape}; expected [batch, seq]; one position per "
            "query; reshape it"
        )
    batch, seq = pos.shape
    checks.positive(batch=batch, seq=seq, n_heads=n_heads)
    checks.check_tiling(config)
    s = sizes_of(batch, n_heads, seq, 1, config, lnc, config.block_len)
    checks.check_slots(s)
    for name, ids in (("pos_ids", pos), ("start_pos_ids", start)):
        check_positions(name, ids, s)
    check_mask("active_mask", active, (seq, batch, n_heads, seq))
    return s


def _checked_tile(s: TkgSizes, offset: int, given: int | None, layout: str) -> int:
    """Slots of the part: inside those of a core, and whole folds of them."""
    check_whole(s_prior_offset=offset)
    if given is not None:
        check_whole(s_prior_tile=given)
    tile = s.local_slots - offset if given is None else given
    if not isinstance(layout, str) or layout not in LAYOUTS:
        raise ArgumentError(
            f"layout has {shown(layout)}; expected 'sbuf' or 'hbm'; a mask is kept on "
            "chip or written out; name one of the two"
        )
    if layout == "hbm" and (offset != 0 or given is not None):
        raise ArgumentError(
            f"s_prior_offset has {offset} and s_prior_tile {given} with layout 'hbm'; "
            "expected 0 and None; in HBM the mask of the whole cache is written; leave "
            "both out"
        )
    unit = PARTITIONS * (s.block_len or 1)
    if (
        offset < 0
        or offset % PARTITIONS != 0
        or tile < 1
        or tile % unit != 0
        or offset + tile > s.local_slots
    ):
        raise ArgumentError(
            f"s_prior_offset has {offset} and the tile {tile}; expected multiples of "
            f"128 and {unit} inside the {s.local_slots} slots of a core; a tile fills "
            "the partitions; round both down"
        )
    return tile
