"""The right loop, written plainly, whose steps the mutants replace (book).

It is slow on purpose: one row of one head at a time, one tile of keys at a time, with
NumPy only inside a tile. Each step is one small method, so that a wrong kernel is a
subclass with one method of its own, and the difference of the two methods is the fault.
"""

import numpy as np

from flashlib.mutants.loop.call import Call, spread
from flashlib.output import AttentionOutput


class PlainLoop:
    """Flash attention as on paper; called like `flashlib.flash_attention`."""

    def __call__(
        self,
        q: np.ndarray,
        k: np.ndarray,
        v: np.ndarray,
        *,
        causal: bool = False,
        window: int | tuple[int | None, int | None] | None = None,
        scale: float | None = None,
        softcap: float | None = None,
        mask: np.ndarray | None = None,
        bias: np.ndarray | None = None,
        sink: np.ndarray | None = None,
        tile: int | None = None,
    ) -> AttentionOutput:
        """Walk every row of every head.

        Parameters
        ----------
        q, k, v : ndarray
            ``[seq_q, n_heads, head_dim]``, ``[seq_k, n_kv_heads, head_dim]`` and
            ``[seq_k, n_kv_heads, head_dim_v]``.
        causal, window, scale, softcap, mask, bias, sink, tile
            As in `flashlib.flash_attention`; a tile is 64 keys by default.

        Returns
        -------
        AttentionOutput
            out ``[seq_q, n_heads, head_dim_v]`` and lse ``[seq_q, n_heads]``.
        """
        work = self.working_dtype(q.dtype)
        shape = (q.shape[1], q.shape[0], k.shape[0])
        left, right = self.window_ends(window)
        call = Call(
            *(self.read(x, work) for x in (q, k, v)),
            scale=None if scale is None else float(scale),
            softcap=None if softcap is None else float(softcap),
            left=left,
            right=0 if causal and (right is None or right > 0) else right,
            mask=spread(mask, shape, bool),
            bias=spread(bias, shape, work),
            sink=None if sink is None else np.asarray(sink, work),
            tile=tile or 64,
        )
        out = np.zeros((call.seq_q, call.n_heads, v.shape[2]), work)
        lse = np.full((call.seq_q, call.n_heads), -np.inf, work)
        acc = np.zeros(v.shape[2], work)
        with np.errstate(all="ignore"):
            for h, i in self.order(call):
                out[i, h], lse[i, h] = self.row(call, h, i, acc)
        precise = np.float64 if q.dtype == np.float64 else np.float32
        return AttentionOutput(out.astype(q.dtype), lse.astype(precise))

    def order(self, call):
        """Yield every query row of every head, once; cores may share them out."""
        yield from np.ndindex(call.n_heads, call.seq_q)

    def row(self, call, h, i, acc):
        """Walk the keys of query row i of head h; acc is one buffer for all rows."""
        m, l, acc = self.start(call, h, acc)
        lo, hi = self.key_range(call, i)
        for a, b in self.tiles(lo, hi, call.tile):
            s, v = self.tile(call, h, i, a, b)
            m, l, acc = self.step(m, l, acc, s, v)
        return self.finish(*self.close(call, h, m, l, acc))

    def working_dtype(self, dtype):
        """Return the dtype to compute in: float32, or float64 for float64 input."""
        return np.float64 if dtype == np.float64 else np.float32

    def read(self, x, work):
        """Read an array by its strides, into the dtype to compute in."""
        return np.asarray(x, work)

    def window_ends(self, window):
        """Read a window; an int counts the token itself."""
        if window is None:
            return None, None
        if isinstance(window, int):
            return window - 1, 0
        return window

    def kv_head(self, call, h):
        """Return the KV head that query head h reads."""
        return h // (call.n_heads // call.n_kv_heads)

    def start(self, call, h, acc):
        """Begin a row: nothing seen yet, or the sink."""
        acc.fill(0)
        if call.sink is None or call.sink[h] == -np.inf:
            return -np.inf, 0.0, acc
        return call.sink[h], 1.0, acc

    def key_range(self, call, i):
        """Return the first key of row i and the key after its last."""
        position = self.position(call, i)
        lo = 0 if call.left is None else self.first_key(call, position)
        hi = call.seq_k if call.right is None else self.end_key(call, position)
        return max(lo, 0), min(hi, call.seq_k)

    def position(self, call, i):
        """Return the key that row i sits on: the last row sits on the last key."""
        return i + call.seq_k - call.seq_q

    def first_key(self, call, position):
        """Return the first key of a window."""
        return position - call.left

    def end_key(self, call, position):
        """Return the key after the last one of a causal row or a window."""
        return position + call.right + 1

    def tiles(self, lo, hi, length):
        """Cut the range into tiles; the last one may be shorter."""
        for a in range(lo, hi, length):
            yield a, min(a + length, hi)

    def live(self, call, h, i, a, b):
        """Say which keys of a tile may be read at all."""
        seen = np.ones(b - a, bool)
        if call.mask is not None:
            seen &= self.mask_of(call, h)[i, a:b]
        if call.bias is not None:
            seen &= self.bias_lets_through(call.bias[h, i, a:b])
        return seen

    def mask_of(self, call, h):
        """Return the mask of a head."""
        return call.mask[h]

    def bias_lets_through(self, bias):
        """Say where a bias hides nothing: wherever it is not -inf."""
        return bias != -np.inf

    def tile(self, call, h, i, a, b):
        """Return the scores and the values of the live keys of a tile."""
        keys = a + np.flatnonzero(self.live(call, h, i, a, b))
        s = self.scores(call, h, i, keys)
        return s, call.v[keys, self.kv_head(call, h)]

    def pick_scale(self, call):
        """Fill in the usual scale where none was given."""
        if call.scale is None:
            return 1 / np.sqrt(call.q.shape[2])
        return call.scale

    def scores(self, call, h, i, keys):
        """Score keys against the query: scale, then softcap, then bias."""
        s = self.products(call, h, i, keys)
        s *= self.pick_scale(call)
        s = self.cap(call, s)
        return self.add_bias(call, h, i, keys, s)

    def products(self, call, h, i, keys):
        """Multiply keys with the query."""
        return call.k[keys, self.kv_head(call, h)] @ call.q[i, h]

    def cap(self, call, s):
        """Bend scores so that none is beyond the softcap."""
        if call.softcap is None:
            return s
        return call.softcap * np.tanh(s / call.softcap)

    def add_bias(self, call, h, i, keys, s):
        """Add the bias of every key, where there is one."""
        return s if call.bias is None else s + call.bias[h, i, keys]

    def exp(self, x):
        """Return e to the power x."""
        return np.exp(x)

    def largest(self, s):
        """Return the largest score of a tile, -inf if no key of it is live."""
        return s.max(initial=-np.inf)

    def step(self, m, l, acc, s, v):
        """Add one tile to the running max, denominator and numerator."""
        m, l, acc = self.rescale(m, l, acc, self.largest(s))
        return self.absorb(m, l, acc, s, v)

    def rescale(self, m, l, acc, m_tile):
        """Base the state on the max of a tile where that is larger."""
        if m_tile > m:
            corr = self.exp(m - m_tile)
            l *= corr
            acc *= corr
            m = m_tile
        return m, l, acc

    def absorb(self, m, l, acc, s, v):
        """Add the terms of a tile to the running denominator and numerator."""
        p = self.exp(s - m)
        l += p.sum()
        acc += p @ v
        return m, l, acc

    def close(self, call, h, m, l, acc):
        """Return what to finish with; nothing is left to add after the last tile."""
        return m, l, acc

    def finish(self, m, l, acc):
        """Divide once; a row that saw nothing is zero."""
        if l == 0:
            return np.zeros_like(acc), -np.inf
        return acc / l, m + np.log(l)
