"""Write 0/1 masks on chip, by comparing slot numbers with positions (chapters 18, 19).

1 means attend. Three kinds, chosen by what is given:

- *validity*: slot < pos, one comparison per batch item for all heads and queries;
- *window*: start <= slot < end per query, or its complement when the band wraps
  around the end of a circular cache; no branch, for start and end are run-time data;
- *active*: the rows of the active tokens are copied over the last slots.
"""

from typing import NamedTuple

from flashlib.machine.machine import Machine
from flashlib.machine.tile import Tile
from flashlib.programs.blocks import PARTITIONS, broadcast_row
from flashlib.programs.slot_layout import SlotLayout

__all__ = [
    "ENGINES",
    "Positions",
    "load_positions",
    "write_active",
    "write_band",
    "write_mask",
]

ENGINES = ("vector", "scalar")


class Positions(NamedTuple):
    """Positions on all partitions, ``[128, batch * seq]`` float32.

    ``start`` is None without a window.
    """

    end: Tile
    start: Tile | None

    def columns(self, first: int, count: int) -> "Positions":
        """Cut out the columns of some queries."""
        cut = slice(first, first + count)
        start = None if self.start is None else self.start[:, cut]
        return Positions(self.end[:, cut], start)


def load_positions(m: Machine, hbm: Tile) -> Tile:
    """Load ``[batch, seq]`` to partition 0 and shuffle it to all of them."""
    row = m.sbuf.alloc((1, hbm.shape[0] * hbm.shape[1]))
    return broadcast_row(m, m.isa.dma_copy(row, hbm))


def write_mask(
    m: Machine,
    dst: Tile,
    layout: SlotLayout,
    first: int,
    positions: Positions,
    clamp_end: bool = False,
) -> Tile:
    """Fill ``dst [128, n, batch, n_heads, seq]``; slots count from ``first``.

    With ``clamp_end`` the band of every query ends at the position of the first
    one: the slots from there on are not written yet.
    """
    n = layout.n
    with m.sbuf.scope():
        slots = layout.write_slots(m, m.sbuf.alloc((PARTITIONS, n)), first)
        if positions.start is None:
            _validity(m, dst, slots, positions.end)
        else:
            _windows(m, dst, slots, positions, clamp_end)
    return dst


def _validity(m: Machine, dst: Tile, slots: Tile, pos: Tile) -> None:
    """Compare the slots, repeated for all columns of an item, with its position."""
    _, n, batch, n_heads, seq = dst.shape
    width = n_heads * seq
    wide = m.sbuf.alloc((PARTITIONS, n, width))
    m.isa.tensor_copy(wide, slots[:, :, None].broadcast_to(wide.shape))
    flags = m.sbuf.alloc(wide.shape)
    for b in range(batch):
        column = pos[:, b * seq : b * seq + 1]
        m.isa.tensor_scalar(flags, wide, "less", column)
        own = dst[:, :, b].reshape(wide.shape)
        m.isa.tensor_copy(own, flags, engine=ENGINES[b % 2])


def _windows(
    m: Machine, dst: Tile, slots: Tile, positions: Positions, clamp_end: bool
) -> None:
    """Write one band per query and copy it to all heads."""
    _, _, batch, n_heads, seq = dst.shape
    for b in range(batch):
        for s in range(seq):
            at = b * seq + s
            until = b * seq if clamp_end else at
            with m.sbuf.scope():
                band = write_band(
                    m,
                    slots,
                    positions.start[:, at : at + 1],
                    positions.end[:, until : until + 1],
                    positions.end[:, at : at + 1],
                )
                for h in range(n_heads):
                    engine = ENGINES[(at + h) % 2]
                    m.isa.tensor_copy(dst[:, :, b, h, s], band, engine=engine)


def write_band(m: Machine, slots: Tile, start: Tile, end: Tile, pos: Tile) -> Tile:
    """Select between the band and its wrapped form: eight vector instructions.

    ``start > pos`` says that the band wraps. ``end`` is pos, unless it is clamped.
    """
    ge, lt, normal, wrapped = (m.sbuf.alloc(slots.shape) for _ in range(4))
    wraps = m.sbuf.alloc((PARTITIONS, 1))
    m.isa.tensor_scalar(ge, slots, "greater_equal", start)
    m.isa.tensor_scalar(lt, slots, "less", end)
    m.isa.tensor_tensor(normal, ge, lt, "multiply")
    m.isa.tensor_tensor(wrapped, ge, lt, "maximum")
    m.isa.tensor_tensor(wraps, start, pos, "greater")
    m.isa.tensor_tensor(wrapped, wrapped, normal, "subtract")
    m.isa.tensor_scalar(wrapped, wrapped, "multiply", wraps)
    return m.isa.tensor_tensor(normal, normal, wrapped, "add")


def write_active(m: Machine, dst: Tile, layout: SlotLayout, active: Tile) -> Tile:
    """Copy ``active [seq, batch, n_heads, seq]`` over the last slots of ``dst``."""
    for cells in layout.tail(active.shape[0]):
        rows = active[cells.rows]
        shape = cells.shape + active.shape[1:]
        m.isa.dma_copy(dst[cells.partitions, cells.free], rows.reshape(shape))
    return dst
