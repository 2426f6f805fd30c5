"""The tile walk: one query row, its stripe of K and V, two buffers (chapter 5)."""

from collections.abc import Mapping

import numpy as np

from flashlib.attention import flash_attention
from flashlib.online_softmax import OnlineSoftmax, Step, walk
from flashlib.plots.ch05 import tile_walk
from flashlib.reference import materialized_attention
from flashlib.row import KEYS, QUERY, VALUES
from flashlib.widgets.figure import MovingFigure

TILE = 2
# Query head 0 on KV head 0 is the row; the others make the index arithmetic visible.
Q = np.stack([QUERY, QUERY[::-1] * [0, 1], QUERY * [1, -1], QUERY])[None]
K = np.stack([KEYS, KEYS[::-1]], axis=1)
V = np.stack([VALUES, VALUES[::-1]], axis=1)
N_HEADS, N_KV_HEADS = Q.shape[1], K.shape[1]
N_KEYS, WIDTH = K.shape[0], V.shape[2]
SIZES = {
    "tile_length": TILE,
    "n_keys": N_KEYS,
    "n_heads": N_HEADS,
    "n_kv_heads": N_KV_HEADS,
    "width": WIDTH,
}
N_TILES = N_KEYS // TILE
ACTIONS = ("scores", "rescale", "add")
STEPS = ("start", *(f"{a} {t}" for t in range(N_TILES) for a in ACTIONS), "divide")


def _steps(head: int) -> list[Step]:
    """Return the walk of one query head over the KV head that it reads."""
    kv = head // (N_HEADS // N_KV_HEADS)
    return list(walk(K[:, kv] @ Q[0, head], V[:, kv], TILE))


def walk_state(head: int, step: str) -> dict[str, object]:
    """Compute what the loop holds after one action of one tile."""
    action, _, place = step.partition(" ")
    t = int(place) if place else {"start": 0, "divide": N_TILES - 1}[action]
    done = _steps(head)[t]
    after = _held(done, action)
    kv = head // (N_HEADS // N_KV_HEADS)
    keys = slice(done.start, done.stop)
    read = {"start": 0, "divide": N_KEYS, "add": done.stop}.get(action, done.start)
    return {
        "head": head,
        "kv_head": kv,
        "step": step,
        "action": action,
        "tile": [done.start, done.stop],
        "done": list(range(read)),
        **SIZES,
        "k": K[keys, kv].tolist(),
        "v": V[keys, kv].tolist(),
        "s": [] if action == "start" else (K[keys, kv] @ Q[0, head]).tolist(),
        "p": done.p.tolist(),
        "corr": float(done.corr),
        "rises": bool(done.m_tile > done.before.m),
        "m": None if after.m == -np.inf else float(after.m),
        "l": float(after.l),
        "acc": after.acc.tolist(),
        "out": done.after.out.tolist() if action == "divide" else None,
        "title": _title(action, t),
        "lines": _lines(done, after, action),
    }


def _held(done: Step, action: str) -> OnlineSoftmax:
    """Return the state as it stands after one action on one tile."""
    before = done.before
    if action in ("start", "scores"):
        return before
    if action == "rescale":
        corr = before.correction(done.after.m)
        return OnlineSoftmax(done.after.m, before.l * corr, before.acc * corr)
    return done.after


def _title(action: str, t: int) -> str:
    return {
        "start": "before the first tile",
        "scores": f"tile {t}, pass 1: scores",
        "rescale": f"tile {t}: the repair",
        "add": f"tile {t}, pass 2: add",
        "divide": "after the last tile",
    }[action]


def _lines(done: Step, after: OnlineSoftmax, action: str) -> list[list[object]]:
    """Write the buffers as label, value, and whether this action changed them."""
    rises = bool(done.m_tile > done.before.m)
    rescales = action == "rescale" and rises
    added = action == "add"
    old = _number(float(done.before.m))
    corr = f"e^({old} − {_number(float(done.after.m))}) = {done.corr:.3f}"
    scores = np.log(done.p) + done.after.m
    return [
        ["s", "" if action == "start" else _listed(scores, "g"), action == "scores"],
        [
            "corr",
            (corr if rises else "not needed") if action == "rescale" else "",
            False,
        ],
        ["m", _number(float(after.m)), rescales],
        ["p", _listed(done.p, ".3f") if added else "", added],
        ["ℓ", f"{after.l:.4f}", rescales or added],
        ["a", _listed(after.acc, ".4f"), rescales or added],
        ["a / ℓ", _listed(after.out, ".4f") if action == "divide" else "", True]
        if action == "divide"
        else ["", "", False],
    ]


def _number(m: float) -> str:
    return "−∞" if m == -np.inf else f"{m:g}"


def _listed(values: np.ndarray, form: str) -> str:
    rounded = np.round(values, 9) + 0.0
    return f"({', '.join(format(float(x), form) for x in rounded)})"


def walk_words(state: Mapping[str, object]) -> str:
    """Say what the loop reads and what it holds."""
    a, b = state["tile"]
    where = f"Query head {state['head']} reads KV head {state['kv_head']}."
    if state["action"] == "start":
        return f"{where} Before the first tile m is minus infinity, l and acc are 0."
    if state["action"] == "divide":
        out = ", ".join(f"{x:.3f}" for x in state["out"])
        first = state["head"] * state["width"]
        return (
            f"{where} After the last tile, acc / l = ({out}) is written to columns "
            f"{first} to {first + state['width'] - 1} of the output row."
        )
    keys = f"{where} Tile of keys {a} to {b - 1}"
    scores = " and ".join(f"{s:g}" for s in state["s"])
    if state["action"] == "scores":
        return f"{keys}, pass 1 over K: the scores are {scores}."
    if state["action"] == "rescale":
        return f"{keys}: {_rescale_words(state)}"
    weights = " and ".join(f"{p:.3f}" for p in state["p"])
    return (
        f"{keys}, pass 2 over V: the terms are {weights}; now l = {state['l']:.4f} "
        f"and acc = {_listed(np.array(state['acc']), '.4f')}."
    )


def _rescale_words(state: Mapping[str, object]) -> str:
    if not state["rises"]:
        return f"its max does not beat m = {state['m']:g}, so nothing is rescaled."
    if not state["corr"]:
        return f"its max sets m to {state['m']:g}; l and acc are still 0."
    return (
        f"its max raises m to {state['m']:g}, so l and acc are multiplied by "
        f"{state['corr']:.3f}."
    )


def walk_check(state: Mapping[str, object], head: int, step: str) -> None:
    """Hold the walk against attention over the keys it has read, and the end."""
    want = materialized_attention(Q, K, V, scale=1.0)
    whole = flash_attention(Q, K, V, scale=1.0, tile=TILE, backend="numpy")
    np.testing.assert_allclose(whole.out, want.out, rtol=1e-14)
    read = len(state["done"])
    if state["action"] != "start" and read:
        part = materialized_attention(Q, K[:read], V[:read], scale=1.0)
        got = np.array(state["acc"]) / state["l"]
        np.testing.assert_allclose(got, part.out[0, head], rtol=1e-14)
        lse = state["m"] + np.log(state["l"])
        np.testing.assert_allclose(lse, part.lse[0, head], rtol=1e-14)
    if state["action"] == "divide":
        np.testing.assert_allclose(state["out"], want.out[0, head], rtol=1e-14)
    assert state["kv_head"] == np.repeat(np.arange(N_KV_HEADS), 2)[head]
    assert len(state["s"]) + len(state["acc"]) <= TILE + WIDTH


def walk_figure() -> MovingFigure:
    """Return the figure: tiles of K and V pass by one row of a head."""
    return MovingFigure(
        name="ch05-tile-walk",
        page="notebooks/05_tiles_of_sixty_four",
        caption=(
            "One query row over six keys in tiles of two, with four query heads on "
            "two KV heads. Blue is what is being read, a dot marks a key that is "
            "done, and ▸ marks what the action changed. Head 0 is the row of the "
            "book. Everything that the loop remembers stands on the right."
        ),
        axes={"Query head": tuple(range(N_HEADS)), "Step": STEPS},
        state=walk_state,
        picture=tile_walk,
        words=walk_words,
        check=walk_check,
        start=(0, 5),
        play=True,
    )


FIGURES = (walk_figure,)
