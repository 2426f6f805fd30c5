"""Wrong decode kernels: masks, windows and sinks of heads (chapters 18, 19, 20).

Examples
--------
>>> FAULTS["finite_fill"].fault
'It fills masked cells with the lowest float32 where minus infinity belongs.'
"""

from flashlib.machine.dtypes import FLOAT32_MIN
from flashlib.machine.machine import Machine
from flashlib.machine.tile import Tile
from flashlib.mutants.machine.mask_checks import CHECKS
from flashlib.mutants.machine.wrong_program import wing
from flashlib.programs.masks import build
from flashlib.programs.masks.build import write_band
from flashlib.programs.tkg import kernel, maximum
from flashlib.programs.tkg.run import CoreRun, SlotTile
from flashlib.programs.tkg.scores import step1_scores


def finite_fill(run: CoreRun, tile: SlotTile, mask: Tile) -> Tile:
    """It fills masked cells with the lowest float32 where minus infinity belongs."""
    return step1_scores(run, tile, mask, fill=FLOAT32_MIN)


def filled_with_zero(run: CoreRun, tile: SlotTile, mask: Tile) -> Tile:
    """It takes the mask for a factor, so that masked cells score 0."""
    return step1_scores(run, tile, mask, fill=0.0)


def never_wraps(m: Machine, slots: Tile, start: Tile, end: Tile, pos: Tile) -> Tile:
    """It keeps what lies between start and end, also when the window wraps."""
    ge, lt, normal = (m.sbuf.alloc(slots.shape) for _ in range(3))
    m.isa.tensor_scalar(ge, slots, "greater_equal", start)
    m.isa.tensor_scalar(lt, slots, "less", end)
    return m.isa.tensor_tensor(normal, ge, lt, "multiply")


def clamped_end_wraps(
    m: Machine, slots: Tile, start: Tile, end: Tile, pos: Tile
) -> Tile:
    """It asks the clamped end whether the window wraps, and not the position."""
    return write_band(m, slots, start, end, pos=end)


def sinks_token_by_token(run: CoreRun, tile: SlotTile) -> Tile:
    """It lays the sinks out as if the columns of a head were not neighbors."""
    sink = run.hbm.sink.reshape(1, 1, run.s.n_heads)
    return sink.broadcast_to((tile.count, run.s.seq, run.s.n_heads))


def one_sink(run: CoreRun, tile: SlotTile) -> Tile:
    """It gives the sink of the first head to all of them."""
    sink = run.hbm.sink[:1].reshape(1, 1, 1)
    return sink.broadcast_to((tile.count, run.s.n_heads, run.s.seq))


#: Every wrong program of this wing by its name.
FAULTS = wing(
    CHECKS,
    (18, kernel, "step1_scores", finite_fill),
    (18, kernel, "step1_scores", filled_with_zero),
    (19, build, "write_band", never_wraps),
    (19, build, "write_band", clamped_end_wraps),
    (20, maximum, "sinks_of_columns", sinks_token_by_token),
    (20, maximum, "sinks_of_columns", one_sink),
)
