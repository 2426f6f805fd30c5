"""Name the switches of the decode kernel and their published defaults (chapter 21)."""

from dataclasses import dataclass

__all__ = ["TILE_SLOTS", "TkgConfig"]

TILE_SLOTS = 8192


@dataclass(frozen=True, kw_only=True)
class TkgConfig:
    """What is fixed when the kernel is compiled.

    Parameters
    ----------
    curr_sprior : int
        Slots that are processed, the last ``seq`` of them for the active tokens.
    full_sprior : int
        Slots that the flat cache has.
    tp_k_prior : bool
        K is stored ``[slots, head_dim]`` and transposed on load.
    strided_mm1 : bool
        Partition p takes neighboring slots, so that V is read in long runs.
    use_pos_id : bool
        Build the mask from positions in the kernel instead of loading one.
    fuse_rope : bool
        Rotate q and the active k, and scale q by 1/sqrt(head_dim).
    qk_in_sb, k_out_in_sb, out_in_sb : bool
        q and the active k arrive, the rotated k and the output stay, on chip.
    enable_fa_s_prior_tiling : bool
        Cut more slots than one tile holds into several tiles.
    fa_tile_s_prior : int
        Slots of a tile and threshold per core; a multiple of 128.
    block_len : int
        Slots of a page; 0 for a flat cache.

    Examples
    --------
    >>> TkgConfig(curr_sprior=256, full_sprior=512).strided_mm1
    True
    """

    curr_sprior: int
    full_sprior: int
    tp_k_prior: bool = False
    strided_mm1: bool = True
    use_pos_id: bool = False
    fuse_rope: bool = False
    qk_in_sb: bool = False
    k_out_in_sb: bool = False
    out_in_sb: bool = False
    enable_fa_s_prior_tiling: bool = True
    fa_tile_s_prior: int = TILE_SLOTS
    block_len: int = 0
