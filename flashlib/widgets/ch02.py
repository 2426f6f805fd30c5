"""Score matrices against caches: what fits where at each prompt length (chapter 2)."""

from collections.abc import Mapping

import numpy as np

from flashlib.measure.host import TYPICAL_CACHES, cache_sizes
from flashlib.plots.ch02 import bytes_picture, in_words
from flashlib.traffic import (
    ENGINE_PASSES,
    QWEN3_0_6B,
    TEXT_PASSES,
    flash_state_bytes,
    model_score_bytes,
    model_score_traffic,
    score_bytes,
)
from flashlib.widgets.figure import MovingFigure

TOKENS = (64, 100, 128, 181, 256, 362, 511, 724, 1024, 1448, 2044, 2896, 4096, 8192)


def bytes_state(n: int) -> dict[str, object]:
    """Count the bytes of every stage at one prompt length."""
    caches = cache_sizes()
    matrix = score_bytes(n)
    holds = [level for level, size in sorted(caches.items()) if matrix <= size]
    return {
        "tokens": n,
        "state": sum(flash_state_bytes()),
        "tensors": 4 * 4 * n * QWEN3_0_6B.head_dim,
        "matrix": matrix,
        "all": model_score_bytes(n),
        "least": model_score_traffic(n, TEXT_PASSES),
        "most": model_score_traffic(n, ENGINE_PASSES),
        "fits": holds[0] if holds else None,
        "typical": {f"L{level}": size for level, size in TYPICAL_CACHES.items()},
        "machine": {f"L{level}": size for level, size in sorted(caches.items())},
    }


def bytes_words(state: Mapping[str, object]) -> str:
    """Say the bytes of every bar and where one matrix fits."""
    if not state["machine"]:
        place = "the build machine does not name its caches"
    elif state["fits"]:
        size = state["machine"][f"L{state['fits']}"] / 2**10
        place = f"it fits into L{state['fits']} of the build machine ({size:,.0f} KiB)"
    else:
        place = "it fits into no cache of the build machine"
    return (
        f"At {state['tokens']:,} tokens the score matrix of one head takes "
        f"{state['matrix']:,} B, and {place}; q, k, v and out of that head take "
        f"{state['tensors']:,} B. All {QWEN3_0_6B.score_matrices} matrices add up to "
        f"{in_words(state['all'])}, and {in_words(state['least'])} to "
        f"{in_words(state['most'])} move. The flash state takes "
        f"{state['state']:,} B."
    )


def bytes_check(state: Mapping[str, object], n: int) -> None:
    """Let NumPy count shapes, and add up the passes one by one."""
    zero = np.float32(0)
    matrix = np.broadcast_to(zero, (n, n)).nbytes
    tensor = np.broadcast_to(zero, (n, QWEN3_0_6B.head_dim)).nbytes
    assert state["matrix"] == matrix
    assert state["tensors"] == 4 * tensor
    assert state["all"] == matrix * 16 * 28
    for key, passes in (("least", TEXT_PASSES), ("most", ENGINE_PASSES)):
        moved = sum(matrix * 448 for step in passes for _ in range(sum(step[1:])))
        assert state[key] == moved, (state[key], moved)
    assert state["state"] == np.broadcast_to(zero, 64 + 128).nbytes
    larger = [c for c in state["machine"].values() if c >= matrix]
    assert (state["fits"] is None) == (not larger)


def matrix_bytes() -> MovingFigure:
    """Return the bars of the chapter with the caches as lines."""
    return MovingFigure(
        name="ch02-bytes",
        page="notebooks/02_the_megabyte",
        caption=(
            "Bytes on a scale on which each grid line is ten times the one before. "
            "Green marks: caches of a common desktop core; marks at the lower edge: "
            "caches of the machine that built this page. Move the prompt length and "
            "watch the matrix leave one cache after the other."
        ),
        axes={"tokens": TOKENS},
        state=bytes_state,
        picture=bytes_picture,
        words=bytes_words,
        check=bytes_check,
        start=(TOKENS.index(511),),
        play=True,
    )


FIGURES = (matrix_bytes,)
