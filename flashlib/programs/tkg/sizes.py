"""Derive sizes, shares of two cores, tiles and block lengths (chapters 21, 22)."""

import math
from dataclasses import dataclass

from flashlib.programs.blocks import PARTITIONS
from flashlib.programs.slot_layout import SlotLayout
from flashlib.programs.tkg.config import TkgConfig

__all__ = [
    "CLEANED_BLOCKS",
    "GROUP_BLOCKS",
    "GROUP_COLUMNS",
    "TILE_BYTES",
    "TkgSizes",
    "resized_block_len",
    "shares",
    "sizes_of",
]

#: Bytes of scores, exponentials and masks that one tile may take on chip.
TILE_BYTES = 16 * 2**20
GROUP_BLOCKS = 32
#: Blocks of values that are cleaned at a time (hardened).
CLEANED_BLOCKS = 16
GROUP_COLUMNS = 512


def shares(
    lnc: int, batch: int, n_heads: int, seq: int, slots: int
) -> tuple[bool, bool]:
    """Decide what two cores share: the batch, the slots, or nothing.

    Examples
    --------
    >>> shares(2, 4, 8, 7, 3072), shares(2, 4, 1, 5, 2048), shares(2, 1, 1, 1, 128)
    ((True, False), (False, True), (False, False))
    """
    if lnc == 1:
        return False, False
    by_batch = batch % 2 == 0 and (batch * n_heads * seq > PARTITIONS or slots < 256)
    return by_batch, not by_batch and slots >= 256


def resized_block_len(
    block_len: int, slots: int, cores: int, tiles: tuple[int, ...]
) -> int:
    """Shorten pages until 128 of them, or a multiple, fill every tile.

    Parameters
    ----------
    slots : int
        Slots of all cores together.
    cores : int
        Cores that share the slots.
    tiles : tuple of int
        Slots of each tile of one core; a single one when there is no tiling.

    Examples
    --------
    >>> resized_block_len(16, 10240, 2, (5120,)), resized_block_len(16, 256, 1, (256,))
    (8, 2)
    """
    length = math.gcd(block_len, slots // (cores * PARTITIONS))
    if len(tiles) > 1:
        length = math.gcd(length, tiles[0] // PARTITIONS, tiles[-1] // PARTITIONS)
    return length


@dataclass(frozen=True)
class TkgSizes:
    """Sizes of one call; ``width`` columns per batch item ride along."""

    batch: int
    n_heads: int
    seq: int
    head_dim: int
    slots: int
    lnc: int
    tile_limit: int | None
    strided: bool
    page: int

    @property
    def width(self) -> int:
        """Columns of one batch item, one per head and token."""
        return self.n_heads * self.seq

    @property
    def batch_sharded(self) -> bool:
        """Whether two cores take half of the batch items each."""
        return self._shares[0]

    @property
    def slots_sharded(self) -> bool:
        """Whether two cores take half of the slots of every item each."""
        return self._shares[1]

    @property
    def _shares(self) -> tuple[bool, bool]:
        return shares(self.lnc, self.batch, self.n_heads, self.seq, self.slots)

    @property
    def local_batch(self) -> int:
        """Batch items of one core."""
        return self.batch // 2 if self.batch_sharded else self.batch

    @property
    def slot_cores(self) -> int:
        """Cores that share the slots of an item."""
        return 2 if self.slots_sharded else 1

    @property
    def local_slots(self) -> int:
        """Slots of one core."""
        return self.slots // self.slot_cores

    @property
    def tiled(self) -> bool:
        """Whether more than one tile of slots is needed: running maximum and sum."""
        return self.tile_limit is not None and self.local_slots > self.tile_limit

    @property
    def tiles(self) -> tuple[int, ...]:
        """Slots of each tile of one core; the last one takes the remainder."""
        if not self.tiled:
            return (self.local_slots,)
        full, rest = divmod(self.local_slots, self.tile_limit)
        return (self.tile_limit,) * full + ((rest,) if rest else ())

    @property
    def batch_tile(self) -> int:
        """Batch items whose scores fit on chip together."""
        fit = TILE_BYTES // (8 * self.width * self.tiles[0])
        return min(self.local_batch, fit)

    @property
    def per_group(self) -> int:
        """Blocks of 128 keys whose scores share one bank: 4,096 keys, or what fits."""
        return min(GROUP_BLOCKS, GROUP_COLUMNS // self.width)

    @property
    def paged(self) -> bool:
        """Whether the cache is found through a page table."""
        return self.page > 0

    @property
    def block_len(self) -> int:
        """Page length after resizing; 0 for a flat cache."""
        if not self.paged:
            return 0
        return resized_block_len(self.page, self.slots, self.slot_cores, self.tiles)

    @property
    def factor(self) -> int:
        """Resized blocks per page."""
        return self.page // self.block_len

    def layout(self, size: int) -> SlotLayout:
        """Layout of a tile of ``size`` slots."""
        n = size // PARTITIONS
        unit = self.block_len if self.paged else n if self.strided else 1
        return SlotLayout(n, unit)

    def sbuf_bytes(self, io: int, kv: int, hardened: bool = False) -> int:
        """Upper bound of what one partition holds at a time.

        Parameters
        ----------
        io, kv : int
            Bytes per element of q and of the cache.
        hardened : bool
            Values are cleaned on chip, some blocks at a time.
        """
        n, columns = self.tiles[0] // PARTITIONS, self.batch_tile * self.width
        scores = n * columns * (4 + io + 1)
        masking = 3 * 4 * n * self.width
        keys = n * PARTITIONS * kv + 2 * n * self.head_dim * (self.paged or kv == 1)
        values = n * self.head_dim * kv
        if hardened:
            blocks = min(n, CLEANED_BLOCKS)
            values += blocks * (self.head_dim * (5 + io + kv) + self.width * io + 2)
        columns_of_all = self.batch * self.width
        rows = 4 * (12 * columns + 6 * columns_of_all + 4 * self.batch * self.seq)
        table = (
            4 * 3 * self.batch_tile * (self.slots // PARTITIONS) if self.paged else 0
        )
        return scores + max(masking, keys, values) + rows + table + 4096


def sizes_of(
    batch: int,
    n_heads: int,
    seq: int,
    head_dim: int,
    config: TkgConfig,
    lnc: int,
    page: int = 0,
) -> TkgSizes:
    """Collect the sizes of a call from its shapes and its configuration."""
    limit = config.fa_tile_s_prior if config.enable_fa_s_prior_tiling else None
    strided = config.strided_mm1 and not page
    return TkgSizes(
        batch, n_heads, seq, head_dim, config.curr_sprior, lnc, limit, strided, page
    )
