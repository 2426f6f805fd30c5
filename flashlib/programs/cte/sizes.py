"""Plan the prefill kernel: groups of queries, sections and tiles of keys (chapter 23).

Cached keys of a prefix, padded to whole tiles, come first; the keys of the call
follow. 128 queries make a group, 512 keys a tile, up to 10,240 keys one section.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

from flashlib.programs.blocks import PARTITIONS

__all__ = [
    "EARLY_SHARE",
    "NARROW_WINDOW",
    "POSITIONS",
    "SECTION",
    "SEQUENCE_SPLIT",
    "TILE",
    "WHOLE",
    "CteSizes",
    "Keys",
    "Section",
    "Share",
]

TILE = 512
WHOLE = 10240
SECTION = 8192
SEQUENCE_SPLIT = 1024
#: Share of the groups that the first core takes: early causal groups see fewer keys.
EARLY_SHARE = 0.65
#: Windows up to this are cut by range_select, wider ones by two affine_selects.
NARROW_WINDOW = 128
#: Positions are compared in float32, which is exact below.
POSITIONS = 2**24


class Keys(NamedTuple):
    """A run of keys: where in the section, and which keys of the prefix or call."""

    at: int
    width: int
    key: int
    prior: bool

    @property
    def last(self) -> int:
        """Number of the last key."""
        return self.key + self.width - 1

    def parts(self, size: int = PARTITIONS) -> list["Keys"]:
        """Cut into runs of ``size``."""
        return [
            Keys(self.at + i, min(size, self.width - i), self.key + i, self.prior)
            for i in range(0, self.width, size)
        ]


class Section(NamedTuple):
    """Keys that are on chip together."""

    first: int
    stop: int
    has_prior: bool
    tiles: tuple[Keys, ...]

    @property
    def size(self) -> int:
        """Keys of the section."""
        return self.stop - self.first


class Share(NamedTuple):
    """Groups of one batch item that a core computes."""

    item: int
    groups: range


@dataclass(frozen=True)
class CteSizes:
    """Sizes and switches of one call, all known before it runs."""

    batch: int
    batch_kv: int
    seq_q: int
    seq_k: int
    head_dim: int
    prior: int = 0
    causal: bool = True
    window: int | None = None
    q_offset: int = 0
    q_stride: int = 1
    packed: bool = False

    @property
    def groups(self) -> int:
        """Groups of 128 query rows."""
        return math.ceil(self.seq_q / PARTITIONS)

    @property
    def prior_padded(self) -> int:
        """Rows of the prefix, rounded up to whole tiles."""
        return math.ceil(self.prior / TILE) * TILE

    @property
    def moved(self) -> bool:
        """Whether queries are a part of a longer sequence (context parallelism)."""
        return self.q_offset != 0 or self.q_stride != 1

    @property
    def strided_part(self) -> bool:
        """Every ``q_stride``-th row, first one below the stride: positions bound."""
        return self.q_stride > 1 and self.q_offset < self.q_stride

    def rows(self, group: int) -> range:
        """Query rows of a group."""
        return range(group * PARTITIONS, min((group + 1) * PARTITIONS, self.seq_q))

    def sections(self) -> list[Section]:
        """One section up to 10,240 keys, else sections of 8,192."""
        total = self.prior_padded + self.seq_k
        size = total if total <= WHOLE else SECTION
        out = []
        for first in range(0, total, size):
            stop = min(first + size, total)
            tiles = tuple(
                self._tile(first, at, min(TILE, stop - at))
                for at in range(first, stop, TILE)
            )
            out.append(Section(first, stop, first < self.prior_padded, tiles))
        return out

    def _tile(self, first: int, at: int, width: int) -> Keys:
        prior = at < self.prior_padded
        return Keys(at - first, width, at if prior else at - self.prior_padded, prior)

    def positions(self, group: int) -> tuple[int, int]:
        """Lowest and highest position of a group, as the compiler knows them."""
        rows = self.rows(group)
        slack = self.q_stride - 1
        return rows[0] * self.q_stride, rows[-1] * self.q_stride + slack

    def needed(self, group: int, keys: Keys, section: Section) -> bool:
        """Whether a run of keys is computed for a group, decided from positions.

        Nothing is skipped where positions are run-time data, beside a prefix, or
        where a row has no key at all: its mean is over all of v.
        """
        unknown = self.moved and not self.strided_part
        if not self.causal or self.packed or section.has_prior or unknown:
            return True
        low, high = self.positions(group)
        if self.window is None:
            return high >= keys.key
        if high - (self.window - 1) > self.seq_k - 1:
            return True
        return high >= keys.key and low < keys.last + self.window

    def dynamic(self, keys: Keys) -> bool:
        """Whether the mask compares with run-time columns (range_select)."""
        narrow = self.window is not None and self.window <= NARROW_WINDOW
        return keys.prior or self.packed or self.moved or narrow

    def masked(self, group: int, keys: Keys) -> bool:
        """Whether some row of the group may not see some key of the run."""
        if keys.prior or self.packed:
            return True
        if not self.causal:
            return False
        if self.window is not None or (self.moved and not self.strided_part):
            return True
        return self.positions(group)[0] < keys.last

    def plan(self, group: int) -> list[tuple[int, list[Keys]]]:
        """Sections that a group takes part in, with the tiles it computes there."""
        out = []
        for number, section in enumerate(self.sections()):
            tiles = [t for t in section.tiles if self.needed(group, t, section)]
            if tiles:
                out.append((number, tiles))
        return out

    def shares(self, cores: int) -> list[list[Share]]:
        """Split the batch over cores; an odd last item is cut along its queries."""
        everything = range(self.groups)
        if cores == 1:
            return [[Share(b, everything) for b in range(self.batch)]]
        half = self.batch // 2
        out = [
            [Share(b, everything) for b in range(first, first + half)]
            for first in (0, half)
        ]
        if self.batch % 2:
            last = self.batch - 1
            cut = self.groups
            if self.seq_q >= SEQUENCE_SPLIT:
                cut = self._cut()
                out[1].append(Share(last, range(cut, self.groups)))
            out[0].append(Share(last, range(cut)))
        return out

    def _cut(self) -> int:
        """Groups of the first core: 65% when causal, blended with half by prefix."""
        share = 0.5
        unknown = self.moved and not self.strided_part
        if self.causal and self.window is None and not unknown:
            own, other = self.seq_k, self.prior_padded
            share = (EARLY_SHARE * own + 0.5 * other) / (own + other)
        return max(1, min(self.groups - 1, round(share * self.groups)))
