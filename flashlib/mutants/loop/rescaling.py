"""Mutants of the running state: max, rescale, sink, lse (chapter 4)."""

import numpy as np

from flashlib.mutants.loop.plain import PlainLoop
from flashlib.mutants.loop.wrong_loop import wing


class NoMax(PlainLoop):
    """It never subtracts the largest score."""

    def largest(self, s):
        return s.dtype.type(0)


class NoRescaleL(PlainLoop):
    """It rescales acc but not l when the max rises."""

    def rescale(self, m, l, acc, m_tile):
        if m_tile > m:
            corr = self.exp(m - m_tile)
            acc *= corr
            m = m_tile
        return m, l, acc


class NoRescaleAcc(PlainLoop):
    """It rescales l but not acc when the max rises."""

    def rescale(self, m, l, acc, m_tile):
        if m_tile > m:
            corr = self.exp(m - m_tile)
            l *= corr
            m = m_tile
        return m, l, acc


class InverseRescale(PlainLoop):
    """It multiplies by exp(m_new - m_old) where exp(m_old - m_new) belongs."""

    def rescale(self, m, l, acc, m_tile):
        if m_tile > m:
            corr = self.exp(m_tile - m) if l else 0.0
            l *= corr
            acc *= corr
            m = m_tile
        return m, l, acc


class MaxReplacedFirst(PlainLoop):
    """It stores the new max before it computes the correction, which is then 1."""

    def rescale(self, m, l, acc, m_tile):
        if m_tile > m:
            m = m_tile
            corr = self.exp(m - m_tile)
            l *= corr
            acc *= corr
        return m, l, acc


class GeForGt(PlainLoop):
    """It compares with >= where > belongs: an empty tile computes -inf minus -inf."""

    def rescale(self, m, l, acc, m_tile):
        if m_tile >= m:
            corr = self.exp(m - m_tile)
            l *= corr
            acc *= corr
            m = m_tile
        return m, l, acc


class Base2Lse(PlainLoop):
    """Its lse adds the logarithm to base 2 of l to m."""

    def finish(self, m, l, acc):
        if l == 0:
            return np.zeros_like(acc), -np.inf
        return acc / l, m + np.log2(l)


class RescaleInPart(PlainLoop):
    """It rescales the first 128 columns of acc and leaves the others behind."""

    def rescale(self, m, l, acc, m_tile):
        if m_tile > m:
            corr = self.exp(m - m_tile)
            l *= corr
            acc[:128] *= corr
            m = m_tile
        return m, l, acc


class OneLongChain(PlainLoop):
    """It adds one key at a time, in a chain of additions as long as the row."""

    def absorb(self, m, l, acc, s, v):
        for score, row in zip(s, v, strict=True):
            p = self.exp(score - m)
            l += p
            acc += p * row
        return m, l, acc


class ZeroWeightUnread(PlainLoop):
    """It skips a value whose weight is zero, NaN or not."""

    def absorb(self, m, l, acc, s, v):
        p = self.exp(s - m)
        l += p.sum()
        acc += p[p != 0] @ v[p != 0]
        return m, l, acc


class SinkPerTile(PlainLoop):
    """It counts the sink once for every tile."""

    def tile(self, call, h, i, a, b):
        keys = a + np.flatnonzero(self.live(call, h, i, a, b))
        s = self.scores(call, h, i, keys)
        v = call.v[keys, self.kv_head(call, h)]
        if call.sink is not None and a > 0:
            s = np.append(s, call.sink[h])
            v = np.vstack([v, np.zeros_like(v[:1])])
        return s, v


class SinkAtTheEnd(PlainLoop):
    """It adds exp(sink - m) to l after the walk, against a max that left it out."""

    def start(self, call, h, acc):
        acc.fill(0)
        return -np.inf, 0.0, acc

    def close(self, call, h, m, l, acc):
        if call.sink is not None:
            l += self.exp(call.sink[h] - m)
        return m, l, acc


class SinkByKvHead(PlainLoop):
    """It reads the sink of the KV head."""

    def start(self, call, h, acc):
        acc.fill(0)
        h = self.kv_head(call, h)
        if call.sink is None or call.sink[h] == -np.inf:
            return -np.inf, 0.0, acc
        return call.sink[h], 1.0, acc


#: Every wrong loop of this wing by its name.
FAULTS = wing(
    4,
    {
        "no_max": NoMax,
        "no_rescale_l": NoRescaleL,
        "no_rescale_acc": NoRescaleAcc,
        "inverse_rescale": InverseRescale,
        "max_replaced_first": MaxReplacedFirst,
        "ge_for_gt": GeForGt,
        "rescale_in_part": RescaleInPart,
        "one_long_chain": OneLongChain,
        "zero_weight_unread": ZeroWeightUnread,
        "base_2_lse": Base2Lse,
        "sink_per_tile": SinkPerTile,
        "sink_at_the_end": SinkAtTheEnd,
        "sink_by_kv_head": SinkByKvHead,
    },
)
