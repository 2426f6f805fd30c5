"""Wrong decode programs: one step of the five replaced (chapters 15, 16, 17).

Examples
--------
>>> FAULTS["zero_fill"].fault
'It fills the scores with 0 where minus infinity belongs.'
"""

import importlib

import numpy as np

from flashlib.machine.dtypes import FLOAT32_MIN
from flashlib.machine.machine import Machine
from flashlib.machine.tile import Tile
from flashlib.mutants.machine.step_checks import CHECKS
from flashlib.mutants.machine.wrong_program import wing
from flashlib.programs.blocks import PARTITIONS, pieces
from flashlib.programs.decode_sizes import Sizes
from flashlib.programs.decode_tile import (
    load_keys,
    step1_scores,
    step4_sum,
)

# the package gives the name of this module to the function in it
decode_tile = importlib.import_module("flashlib.programs.decode_tile")


def products_add_up(
    m: Machine, queries: Tile, k_hbm: Tile, mask: Tile, s: Sizes, fill: float = -np.inf
) -> Tile:
    """It makes one window in PSUM for all blocks of keys, and products add up in it."""
    shape = (PARTITIONS, s.blocks, s.n_kv_heads, s.width)
    scores = m.sbuf.alloc(shape)
    with m.step("mm1"):
        m.isa.memset(scores, fill)
    mask = mask.reshape(shape)
    for b in range(s.n_kv_heads):
        with m.sbuf.scope(), m.psum.scope():
            keys = load_keys(m, k_hbm[:, b], s)
            moving = queries[:, b * s.width : (b + 1) * s.width]
            raw = m.psum.alloc((PARTITIONS, 1, s.width))
            for group in pieces(s.blocks, 1):
                with m.step("mm1"):
                    for t in range(group.start, group.stop):
                        block = keys[:, t * PARTITIONS : (t + 1) * PARTITIONS]
                        m.isa.nc_matmul(
                            raw[:, t - group.start], stationary=block, moving=moving
                        )
                    m.isa.tensor_copy_predicated(
                        scores[:, group, b], raw, mask[:, group, b]
                    )
    return scores.reshape(PARTITIONS, s.blocks, s.columns)


def zero_fill(m: Machine, queries: Tile, k_hbm: Tile, mask: Tile, s: Sizes) -> Tile:
    """It fills the scores with 0 where minus infinity belongs."""
    return step1_scores(m, queries, k_hbm, mask, s, fill=0.0)


def max_of_the_lane(m: Machine, scores: Tile) -> Tile:
    """It subtracts the maximum of each partition, and the lanes never meet."""
    columns = scores.shape[2]
    peak = m.sbuf.alloc((PARTITIONS, columns))
    with m.step("max"), m.sbuf.scope():
        lanes = m.sbuf.alloc((PARTITIONS, columns))
        m.isa.tensor_reduce(lanes, "maximum", scores.permute((0, 2, 1)), axis=2)
        m.isa.tensor_scalar(peak, lanes, "maximum", FLOAT32_MIN)
    return peak


def sum_of_one_block(m: Machine, p: Tile) -> Tile:
    """It adds over the partitions of the first block and forgets the others."""
    return step4_sum(m, p[:, :1])


def first_sum_for_all(m: Machine, p: Tile) -> Tile:
    """It divides every head by the sum of the first."""
    factor = step4_sum(m, p)
    first = m.isa.tensor_copy(m.sbuf.alloc((PARTITIONS, 1)), factor[:, :1])
    return first.broadcast_to(factor.shape)


#: Every wrong program of this wing by its name.
FAULTS = wing(
    CHECKS,
    (15, decode_tile, "step1_scores", products_add_up),
    (16, decode_tile, "step1_scores", zero_fill),
    (17, decode_tile, "step2_max", max_of_the_lane),
    (17, decode_tile, "step4_sum", sum_of_one_block),
    (17, decode_tile, "step4_sum", first_sum_for_all),
)
