"""Mutants of the cache: pages, tables, parts of the keys (chapter 14).

The keys of a call are first put into pages, out of order, as a cache would hold them.
Slots past the last token hold NaN; page `FIRST` has been given back by its owner.
"""

import numpy as np

from flashlib.mutants.loop.plain import PlainLoop
from flashlib.mutants.loop.wrong_loop import wing

BLOCK = 16  # tokens of a page
FIRST = 2**27  # number of the first page: the cache lies far out in memory
PARTS = 2  # parts that the keys of a row are cut into


class PagedLoop(PlainLoop):
    """The plain loop over pages, the keys of a row in parts that are merged."""

    def table(self, n_tokens):
        """Return the page numbers of a sequence, -1 behind its last page."""
        pages = FIRST + 1 + np.arange(-(-n_tokens // BLOCK))[::-1]
        return np.append(pages, [-1] * 8)

    def in_pages(self, x):
        """Lay tokens out in pages, last page first, behind a page of ones."""
        n_pages = -(-len(x) // BLOCK)
        slots = np.full((n_pages * BLOCK, x.shape[1]), np.nan, x.dtype)
        slots[: len(x)] = x
        pages = slots.reshape(n_pages, BLOCK, x.shape[1])[::-1]
        return np.concatenate([np.ones((1, BLOCK, x.shape[1]), x.dtype), pages])

    def slot(self, table, keys):
        """Return the slot of every key, counted from the start of memory."""
        return table[keys // BLOCK] * BLOCK + keys % BLOCK

    def fetch(self, x, keys):
        """Read tokens through the table; what lies outside the cache is NaN."""
        at = self.slot(self.table(len(x)), keys) - FIRST * BLOCK
        pages = self.in_pages(x)
        slots = pages.reshape(len(pages) * BLOCK, x.shape[1])
        inside = (at >= 0) & (at < len(slots))
        found = slots[np.where(inside, at, 0)]
        found[~inside] = np.nan
        return found

    def live_keys(self, call, h, i, a, b):
        """Return the keys of a tile that are read."""
        return a + np.flatnonzero(self.live(call, h, i, a, b))

    def tile(self, call, h, i, a, b):
        """Return the scores and the values of the live keys of a tile."""
        keys, kv = self.live_keys(call, h, i, a, b), self.kv_head(call, h)
        s = self.scores(call, h, i, keys)
        return s, self.fetch(call.v[:, kv], keys)

    def products(self, call, h, i, keys):
        """Multiply keys with the query."""
        return self.fetch(call.k[:, self.kv_head(call, h)], keys) @ call.q[i, h]

    def row(self, call, h, i, acc):
        """Walk the parts of the keys, each a state of its own, and merge."""
        m, l, acc = self.start(call, h, acc)
        lo, hi = self.key_range(call, i)
        ends = [lo + max(hi - lo, 0) * n // PARTS for n in range(PARTS + 1)]
        for first, behind in zip(ends, ends[1:], strict=False):
            part = self.start_part(call, h, acc)
            for a, b in self.tiles(first, behind, call.tile):
                part = self.step(*part, *self.tile(call, h, i, a, b))
            m, l, acc = self.merge((m, l, acc), part)
        return self.finish(*self.close(call, h, m, l, acc))

    def start_part(self, call, h, acc):
        """Begin a part: nothing seen yet."""
        return -np.inf, 0.0, np.zeros_like(acc)

    def merge(self, one, other):
        """Merge two states; what saw nothing adds nothing."""
        m = max(one[0], other[0])
        ground = m if m > -np.inf else 0
        mine, theirs = self.exp(one[0] - ground), self.exp(other[0] - ground)
        l = one[1] * mine + other[1] * theirs
        return m, l, one[2] * mine + other[2] * theirs


class StalePage(PagedLoop):
    """It reads the last page through a table from before it was entered."""

    def table(self, n_tokens):
        pages = FIRST + 1 + np.arange(-(-n_tokens // BLOCK))[::-1]
        if len(pages) > 1:
            pages[-1] = FIRST
        return np.append(pages, [-1] * 8)


class MinusOneIsAPage(PagedLoop):
    """It reads a whole tile, page -1 included, and weighs what is too much with 0."""

    def live_keys(self, call, h, i, a, b):
        return np.arange(a, -(-b // call.tile) * call.tile)

    def tile(self, call, h, i, a, b):
        keys, kv = self.live_keys(call, h, i, a, b), self.kv_head(call, h)
        live = np.append(self.live(call, h, i, a, b), [False] * (len(keys) - b + a))
        known = np.minimum(keys, call.seq_k - 1)
        s = np.where(live, self.scores(call, h, i, known), -np.inf)
        return s, self.fetch(call.v[:, kv], keys)


class NarrowOffsets(PagedLoop):
    """It multiplies page numbers in 32 bits, which page 2**27 overflows."""

    def slot(self, table, keys):
        return (table[keys // BLOCK] * BLOCK + keys % BLOCK).astype(np.int32)


class SinkInEveryPart(PagedLoop):
    """It starts every part with the sink, which is counted once more for each."""

    def start_part(self, call, h, acc):
        if call.sink is None or call.sink[h] == -np.inf:
            return -np.inf, 0.0, np.zeros_like(acc)
        return call.sink[h], 1.0, np.zeros_like(acc)


class EmptyPartMerge(PagedLoop):
    """It merges two parts that saw nothing, and -inf minus -inf is NaN."""

    def merge(self, one, other):
        m = max(one[0], other[0])
        ground = m
        mine, theirs = self.exp(one[0] - ground), self.exp(other[0] - ground)
        l = one[1] * mine + other[1] * theirs
        return m, l, one[2] * mine + other[2] * theirs


class PartsUnweighted(PagedLoop):
    """It adds the sums of two parts without rescaling them to one max."""

    def merge(self, one, other):
        m = max(one[0], other[0])
        l = one[1] + other[1]
        return m, l, one[2] + other[2]


#: Every wrong loop of this wing by its name.
FAULTS = wing(
    14,
    {
        "stale_page": StalePage,
        "minus_one_is_a_page": MinusOneIsAPage,
        "narrow_offsets": NarrowOffsets,
        "sink_in_every_part": SinkInEveryPart,
        "empty_part_merge": EmptyPartMerge,
        "parts_unweighted": PartsUnweighted,
    },
)
