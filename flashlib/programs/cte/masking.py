"""Mask prefill scores: affine_select by index, range_select by columns (chapter 23).

The fill is the lowest float32, not -inf: the score of a masked key is replaced, so a
row without any key becomes uniform over all keys that were processed.
"""

from flashlib.machine.dtypes import FLOAT32_MIN
from flashlib.machine.tile import Tile
from flashlib.programs.cte.run import CteRun, Group
from flashlib.programs.cte.sizes import Keys

__all__ = ["mask_and_scale"]


def mask_and_scale(
    run: CteRun, g: Group, keys: Keys, raw: Tile, dst: Tile, top: Tile
) -> None:
    """Take raw scores out of PSUM; write masked, scaled ones and their maximum."""
    m = run.m
    if not run.s.masked(g.number, keys):
        m.isa.tensor_scalar_reduce(dst, raw, "multiply", run.scale, "maximum", top)
    elif run.s.dynamic(keys):
        _by_columns(run, g, keys, raw, dst, top)
    else:
        _by_index(run, g, keys, raw, dst, top)


def _by_index(
    run: CteRun, g: Group, keys: Keys, raw: Tile, dst: Tile, top: Tile
) -> None:
    """Keep ``q - k >= 0``, and ``k - q + window - 1 >= 0``; then scale.

    The fill is scaled as well: with a negative scale masked keys would win.
    """
    m, ahead = run.m, g.rows[0] - keys.key
    m.isa.tensor_copy(dst, raw)
    m.isa.affine_select(
        dst,
        [[-1, keys.width]],
        1,
        dst,
        FLOAT32_MIN,
        cmp_op="greater_equal",
        offset=ahead,
    )
    if run.s.window is not None:
        m.isa.affine_select(
            dst,
            [[1, keys.width]],
            -1,
            dst,
            FLOAT32_MIN,
            cmp_op="greater_equal",
            offset=run.s.window - 1 - ahead,
        )
    m.isa.tensor_scalar_reduce(dst, dst, "multiply", run.scale, "maximum", top)


def _by_columns(
    run: CteRun, g: Group, keys: Keys, raw: Tile, dst: Tile, top: Tile
) -> None:
    """Keep ``low <= k <= high``, one pair of bounds per row."""
    m = run.m
    if keys.prior not in g.bounds:
        g.bounds[keys.prior] = _bounds(run, g, keys.prior)
    low, high = g.bounds[keys.prior]
    source = raw
    if run.scale != 1.0:
        source = m.isa.tensor_scalar(dst, raw, "multiply", run.scale)
    m.isa.range_select(
        dst,
        source,
        "greater_equal",
        "less_equal",
        low,
        high,
        reduce_res=top,
        range_start=keys.key,
    )


def _bounds(run: CteRun, g: Group, prior: bool) -> tuple[Tile, Tile]:
    """Lowest and highest key that each row keeps, ``[rows, 1]`` float32."""
    m, s = run.m, run.s
    low, high = m.sbuf.alloc((g.height, 1)), m.sbuf.alloc((g.height, 1))
    own = m.sbuf.alloc((g.height, 1))
    first = s.q_offset + g.rows[0] * s.q_stride
    m.isa.iota(own, [[1, 1]], offset=first, channel_multiplier=s.q_stride)
    window = s.window
    if window is None:
        m.isa.memset(low, 0.0)
    else:
        ahead = (run.prior_used if prior else 0) - (window - 1)
        m.isa.tensor_scalar(low, own, "add", float(ahead))
    if prior:
        m.isa.memset(high, float(run.prior_used - 1))
        return low, high
    if s.causal:
        m.isa.tensor_copy(high, own)
    else:
        m.isa.memset(high, float(s.seq_k - 1))
    if s.packed:
        _meet_given_bounds(run, g, low, high)
    return low, high


def _meet_given_bounds(run: CteRun, g: Group, low: Tile, high: Tile) -> None:
    """Cut by the bounds of the call: minimum inclusive, maximum exclusive."""
    m = run.m
    rows = slice(g.rows[0], g.rows[-1] + 1)
    with m.sbuf.scope():
        given = m.sbuf.alloc(low.shape)
        if "bound_min" in run.hbm:
            m.isa.dma_copy(given, run.hbm["bound_min"][rows])
            m.isa.tensor_tensor(low, low, given, "maximum")
        if "bound_max" in run.hbm:
            m.isa.dma_copy(given, run.hbm["bound_max"][rows])
            m.isa.tensor_scalar(given, given, "subtract", 1.0)
            m.isa.tensor_tensor(high, high, given, "minimum")
