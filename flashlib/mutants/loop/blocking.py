"""Mutants of the query tile: rows that share what is not theirs (chapter 9)."""

from flashlib.mutants.loop.plain import PlainLoop
from flashlib.mutants.loop.wrong_loop import wing

ROWS = 4  # query rows of a tile


class LooseEdge(PlainLoop):
    """It lets every row of a query tile see the keys of the tile's last row."""

    def position(self, call, i):
        i = min(i // ROWS * ROWS + ROWS, call.seq_q) - 1
        return i + call.seq_k - call.seq_q


#: Every wrong loop of this wing by its name.
FAULTS = wing(9, {"loose_edge": LooseEdge})
