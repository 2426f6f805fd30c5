"""Mutants of what a row may see: causal, windows, masks, biases (chapter 6)."""

import numpy as np

from flashlib.mutants.loop.plain import PlainLoop
from flashlib.mutants.loop.wrong_loop import wing


class OffByOne(PlainLoop):
    """Its causal bound is i where i + 1 belongs."""

    def end_key(self, call, position):
        return position + call.right


class TopLeftCausal(PlainLoop):
    """It leaves out the offset, so the first query sits on the first key."""

    def position(self, call, i):
        return i


class WindowOffByOne(PlainLoop):
    """It loses the oldest key of a window."""

    def first_key(self, call, position):
        return position - call.left + 1


class WindowWithoutSelf(PlainLoop):
    """It reads window=w as w tokens besides the row's own."""

    def window_ends(self, window):
        if window is None:
            return None, None
        if isinstance(window, int):
            return window, 0
        return window


class BoundInWholeTiles(PlainLoop):
    """It rounds the causal bound up to a whole tile."""

    def end_key(self, call, position):
        return -(-(position + call.right + 1) // call.tile) * call.tile


class MaskOfHeadZero(PlainLoop):
    """It masks every head like the first."""

    def mask_of(self, call, h):
        return call.mask[0]


class FiniteMask(PlainLoop):
    """It masks with -1e4, which a real score can undercut."""

    def tile(self, call, h, i, a, b):
        keys = np.arange(a, b)
        s = self.scores(call, h, i, keys)
        s = np.where(self.live(call, h, i, a, b), s, np.array(-1e4, s.dtype))
        return s, call.v[keys, self.kv_head(call, h)]


class LowestMask(PlainLoop):
    """It masks with the lowest finite number: an empty row is the mean of v."""

    def tile(self, call, h, i, a, b):
        keys = np.arange(a, b)
        s = self.scores(call, h, i, keys)
        s = np.where(self.live(call, h, i, a, b), s, np.finfo(s.dtype).min)
        return s, call.v[keys, self.kv_head(call, h)]


class LowBiasHides(PlainLoop):
    """It takes a finite bias below -3e38 for -inf."""

    def bias_lets_through(self, bias):
        return bias > -3e38


class RowsOfABlock(PlainLoop):
    """It places a row by its number within a block of 256 rows."""

    def position(self, call, i):
        return i % 256 + call.seq_k - call.seq_q


class ZeroTimesNan(PlainLoop):
    """It weighs masked values with zero, and 0 times NaN is NaN."""

    def tile(self, call, h, i, a, b):
        keys = np.arange(a, b)
        live = self.live(call, h, i, a, b)
        s = np.where(live, self.scores(call, h, i, keys), np.float32(-np.inf))
        seen = slice(None) if live.any() else slice(0)
        return s[seen], call.v[keys, self.kv_head(call, h)][seen]


class BiasBeforeSoftcap(PlainLoop):
    """It adds the bias before the softcap."""

    def scores(self, call, h, i, keys):
        s = self.products(call, h, i, keys)
        s *= self.pick_scale(call)
        s = self.add_bias(call, h, i, keys, s)
        return self.cap(call, s)


class SmallSoftcapIgnored(PlainLoop):
    """It takes a softcap of 1 or less for none."""

    def cap(self, call, s):
        if call.softcap is None or call.softcap <= 1:
            return s
        return call.softcap * np.tanh(s / call.softcap)


class SoftcapByReciprocal(PlainLoop):
    """It multiplies by 1 / c, which is infinite for the smallest c."""

    def cap(self, call, s):
        if call.softcap is None:
            return s
        c = s.dtype.type(call.softcap)
        return c * np.tanh(s * (1 / c))


class SoftcapWithoutDivision(PlainLoop):
    """It computes c tanh(s) where c tanh(s / c) belongs."""

    def cap(self, call, s):
        if call.softcap is None:
            return s
        return call.softcap * np.tanh(s)


#: Every wrong loop of this wing by its name.
FAULTS = wing(
    6,
    {
        "off_by_one": OffByOne,
        "top_left_causal": TopLeftCausal,
        "window_off_by_one": WindowOffByOne,
        "window_without_self": WindowWithoutSelf,
        "bound_in_whole_tiles": BoundInWholeTiles,
        "mask_of_head_zero": MaskOfHeadZero,
        "finite_mask": FiniteMask,
        "lowest_mask": LowestMask,
        "low_bias_hides": LowBiasHides,
        "rows_of_a_block": RowsOfABlock,
        "zero_times_nan": ZeroTimesNan,
        "bias_before_softcap": BiasBeforeSoftcap,
        "small_softcap_ignored": SmallSoftcapIgnored,
        "softcap_by_reciprocal": SoftcapByReciprocal,
        "softcap_without_division": SoftcapWithoutDivision,
    },
)
