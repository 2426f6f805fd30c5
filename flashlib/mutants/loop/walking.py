"""Mutants of the walk: tiles, heads, buffers, scores, the last division (chapter 5)."""

import numpy as np

from flashlib.mutants.loop.plain import PlainLoop
from flashlib.mutants.loop.wrong_loop import wing


class DroppedLastTile(PlainLoop):
    """It counts tiles rounding down, so a partial last tile is never visited."""

    def tiles(self, lo, hi, length):
        for t in range(max(1, (hi - lo) // length)):
            a = lo + t * length
            yield a, min(a + length, hi)


class GqaTileOrder(PlainLoop):
    """It maps query head h to KV head h % n_kv_heads."""

    def kv_head(self, call, h):
        return h % call.n_kv_heads


class WrongStripe(PlainLoop):
    """It takes the keys of its KV head and the values of the stripe beside it."""

    def tile(self, call, h, i, a, b):
        keys = a + np.flatnonzero(self.live(call, h, i, a, b))
        s = self.scores(call, h, i, keys)
        return s, call.v[keys, (self.kv_head(call, h) + 1) % call.n_kv_heads]


class FirstColumns(PlainLoop):
    """It multiplies 128 columns of q and k, whatever the width of a head."""

    def products(self, call, h, i, keys):
        return call.k[keys, self.kv_head(call, h), :128] @ call.q[i, h, :128]


class HeavyFirstRace(PlainLoop):
    """It deals rows out heavy first; two cores get the last but one, none the last."""

    def order(self, call):
        rows = list(np.ndindex(call.n_heads, call.seq_q))
        ranges = [self.key_range(call, i) for _, i in rows]
        rows = [rows[n] for n in np.argsort([lo - hi for lo, hi in ranges])]
        yield from rows[:-1] + rows[-2:-1] if len(rows) > 1 else rows


class NoReset(PlainLoop):
    """It starts a row with the acc that the last row left."""

    def start(self, call, h, acc):
        if call.sink is None or call.sink[h] == -np.inf:
            return -np.inf, 0.0, acc
        return call.sink[h], 1.0, acc


class HalfWeights(PlainLoop):
    """It rounds p to float16 before the product with v."""

    def absorb(self, m, l, acc, s, v):
        p = self.exp(s - m)
        l += p.sum()
        acc += p.astype(np.float16).astype(p.dtype) @ v
        return m, l, acc


class ShortExp(PlainLoop):
    """It takes five terms of a series for exp, right to 4e-5."""

    def exp(self, x):
        x = np.maximum(x, -150)
        n = np.rint(x / np.log(2))
        f = x - n * np.log(2)
        series = 1 + f * (1 + f / 2 * (1 + f / 3 * (1 + f / 4)))
        return np.ldexp(series, n.astype(int)).astype(x.dtype)


class FlooredExponent(PlainLoop):
    """It raises exponents below -60 to -60, so that no weight vanishes."""

    def exp(self, x):
        return np.exp(np.maximum(x, -60))


class ScaleByWidth(PlainLoop):
    """It divides by the width of a head instead of its square root."""

    def pick_scale(self, call):
        if call.scale is None:
            return 1 / call.q.shape[2]
        return call.scale


class FalsyScale(PlainLoop):
    """It takes scale=0.0 for a scale not given."""

    def pick_scale(self, call):
        return call.scale or 1 / np.sqrt(call.q.shape[2])


class UnsignedScale(PlainLoop):
    """It drops the sign of a negative scale."""

    def pick_scale(self, call):
        if call.scale is None:
            return 1 / np.sqrt(call.q.shape[2])
        return abs(call.scale)


class AssumedStrides(PlainLoop):
    """It reads an array in the order of memory, whatever its strides say."""

    def read(self, x, work):
        return np.ravel(x, order="K").reshape(x.shape).astype(work)


class HalfAllTheWay(PlainLoop):
    """It computes in float16 where the input is float16."""

    def working_dtype(self, dtype):
        return dtype


class ClippedOut(PlainLoop):
    """It clips its output to the range of float16."""

    def finish(self, m, l, acc):
        if l == 0:
            return np.zeros_like(acc), -np.inf
        return np.clip(acc / l, -65504, 65504), m + np.log(l)


class ZeroNumerator(PlainLoop):
    """It takes a numerator of zero for an empty row."""

    def finish(self, m, l, acc):
        if not acc.any():
            return np.zeros_like(acc), -np.inf
        return acc / l, m + np.log(l)


class NoEmptyGuard(PlainLoop):
    """It divides 0 by 0 for a row without keys."""

    def finish(self, m, l, acc):
        return acc / l, m + np.log(l)


class NanLaundering(PlainLoop):
    """It returns zero where the denominator is NaN."""

    def finish(self, m, l, acc):
        if not l > 0:
            return np.zeros_like(acc), -np.inf
        return acc / l, m + np.log(l)


#: Every wrong loop of this wing by its name.
FAULTS = wing(
    5,
    {
        "dropped_last_tile": DroppedLastTile,
        "gqa_tile_order": GqaTileOrder,
        "wrong_stripe": WrongStripe,
        "first_columns": FirstColumns,
        "heavy_first_race": HeavyFirstRace,
        "no_reset": NoReset,
        "half_weights": HalfWeights,
        "short_exp": ShortExp,
        "floored_exponent": FlooredExponent,
        "scale_by_width": ScaleByWidth,
        "falsy_scale": FalsyScale,
        "unsigned_scale": UnsignedScale,
        "assumed_strides": AssumedStrides,
        "half_all_the_way": HalfAllTheWay,
        "clipped_out": ClippedOut,
        "zero_numerator": ZeroNumerator,
        "no_empty_guard": NoEmptyGuard,
        "nan_laundering": NanLaundering,
    },
)
