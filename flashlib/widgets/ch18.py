"""The row with some keys hidden, in three programs that hide them (chapter 18)."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from flashlib.plots.ch18 import masked_row_picture
from flashlib.programs.cache_call import decode_slots
from flashlib.reference import materialized_attention
from flashlib.row import SCORES, VALUES
from flashlib.widgets.figure import MovingFigure

TILE = 2
LOWEST = np.finfo(np.float32).min
TINY = np.finfo(np.float32).tiny
WAYS = {"decode": "decode", "hardened": "decode, hardened", "prefill": "prefill"}
MASKS = (
    "111111", "111011", "111001", "101010", "010000", "001111", "001011", "110011",
    "111100", "110000", "001100", "000011", "000001", "000010", "100000", "000000",
)  # fmt: skip


class TileState(NamedTuple):
    """What one tile leaves behind: correction, running max, sum and numerator."""

    corr: np.float32
    m: np.float32
    l: np.float32
    acc: np.ndarray


def walk_masked(
    way: str, s: np.ndarray, mask: np.ndarray, v: np.ndarray, tile: int = TILE
) -> tuple[list[TileState], np.ndarray]:
    """Walk one row in float32 as one of the three programs does.

    Parameters
    ----------
    way : str
        ``"decode"``, ``"hardened"`` or ``"prefill"``.
    s, mask : ndarray
        ``[n]`` scores, and 1 where they may be attended.
    v : ndarray
        ``[n, head_dim_v]``.
    tile : int
        Keys per tile.

    Returns
    -------
    tuple
        One `TileState` per tile, and the output ``[head_dim_v]``.
    """
    fill = LOWEST if way == "prefill" else -np.inf
    s, v = np.where(mask, s, fill).astype(np.float32), v.astype(np.float32)
    states: list[TileState] = []
    with np.errstate(all="ignore"):
        for start in range(0, len(s), tile):
            part = slice(start, start + tile)
            top = s[part].max()
            if way == "hardened":
                top = max(top, LOWEST)
            old = (
                states[-1] if states else TileState(*np.float32([1, top, 0]), 0 * v[0])
            )
            m = np.maximum(old.m, top)
            corr = np.exp(old.m - m) if states else np.float32(1)
            p = np.exp(s[part] - max(m, LOWEST))
            l, acc = old.l * corr + p.sum(), old.acc * corr + p @ v[part]
            states.append(TileState(corr, m, l, acc))
        total = max(l, TINY) if way == "hardened" else l
        return states, acc * (1 / np.float32(total))


def _bits(mask: str) -> np.ndarray:
    return np.array([bit == "1" for bit in mask])


def _number(x: float) -> str:
    """Write a float for a reader: three digits, infinities and NaN by their names."""
    if np.isnan(x):
        return "NaN"
    if np.isinf(x):
        return "-∞" if x < 0 else "∞"
    return "-3.4e38" if x == LOWEST else f"{x:.3g}"


def verdict(out: np.ndarray, mask: np.ndarray) -> str:
    """Say what kind of answer the row is."""
    if np.isnan(out).any():
        return "NaN"
    if mask.any():
        return "right"
    return "0, as promised" if not out.any() else "the mean of all values"


def masked_row_state(mask: str, way: str) -> dict[str, object]:
    """Return scores as they are hidden, the state after each tile, and the output."""
    keeps = _bits(mask)
    states, out = walk_masked(way, SCORES, keeps, VALUES)
    fill = _number(LOWEST) if way == "prefill" else "-∞"
    return {
        "mask": mask,
        "way": way,
        "scores": [f"{s:g}" if k else fill for s, k in zip(SCORES, keeps, strict=True)],
        "m": [_number(x.m) for x in states],
        "corr": [_number(x.corr) for x in states],
        "l": [_number(x.l) for x in states],
        "acc": [[_number(a) for a in x.acc] for x in states],
        "out": [_number(x) for x in out],
        "verdict": verdict(out, keeps),
    }


def masked_row_words(state: Mapping[str, object]) -> str:
    """Say what is hidden and what each tile leaves."""
    hidden = [str(i) for i, bit in enumerate(state["mask"]) if bit == "0"]
    keys = "key" + "s" * (len(hidden) > 1)
    what = f"{keys} {', '.join(hidden)} hidden" if hidden else "no key hidden"
    tiles = "; ".join(
        f"tile {t}: max {m}, correction {c}, sum {total}"
        for t, (m, c, total) in enumerate(
            zip(state["m"], state["corr"], state["l"], strict=True)
        )
    )
    return (
        f"{WAYS[state['way']].capitalize()}, {what}, scores "
        f"{' '.join(state['scores'])}; {tiles}; output ({', '.join(state['out'])}), "
        f"{state['verdict']}."
    )


def _kernel(mask: str, hardened: bool) -> np.ndarray:
    """Run the row on the decode kernel: a tile of two keys in each tile of 128."""
    slots = [128 * (j // TILE) + j % TILE for j in range(6)]
    k, v = np.zeros((2, 384, 1, 2), np.float32)
    k[slots, 0, 0], v[slots, 0] = SCORES, VALUES
    flags = np.zeros((1, 1, 384), bool)
    flags[0, 0, slots] = _bits(mask)
    q = np.array([[[1, 0]]], np.float32)
    call = {"mask": flags, "scale": 1.0, "tile": 128, "hardened": hardened}
    return decode_slots(q, k, v, **call).out[0, 0]


def masked_row_check(state: Mapping[str, object], mask: str, way: str) -> None:
    """Hold the walk against the kernel, and prefill against the oracle."""
    keeps, (_, out) = _bits(mask), walk_masked(way, SCORES, _bits(mask), VALUES)
    if way != "prefill":
        np.testing.assert_allclose(out, _kernel(mask, way == "hardened"), rtol=1e-6)
    q = np.ones((1, 1, 1))
    k, v = SCORES.reshape(6, 1, 1), VALUES.reshape(6, 1, 2)
    flags = keeps if keeps.any() or way == "hardened" else np.ones(6, bool)
    scores = k if keeps.any() or way == "hardened" else 0 * k
    want = materialized_attention(q, scores, v, mask=flags[None], scale=1.0).out[0, 0]
    assert (state["verdict"] == "NaN") == bool(np.isnan(out).any())
    if way != "decode" or state["verdict"] != "NaN":
        np.testing.assert_allclose(out, want, rtol=1e-6)


def masked_row_figure() -> MovingFigure:
    """Return the figure: hide keys of the row and see who notices."""
    return MovingFigure(
        name="ch18-masked-row",
        page="notebooks/18_two_masks",
        caption=(
            "The row in tiles of two, with some of its keys hidden. Boxes show the "
            "scores as the softmax meets them; a dashed box is a hidden key. Below "
            "each tile stands what it leaves behind. Watch the tiles that are hidden "
            "from the first one on."
        ),
        axes={"Keys that may be seen": MASKS, "Program": tuple(WAYS)},
        state=masked_row_state,
        picture=masked_row_picture,
        words=masked_row_words,
        check=masked_row_check,
        start=(11, 0),
    )


FIGURES = (masked_row_figure,)
