"""Exercises on heads as columns, and on the limits that they meet (chapter 20)."""

from collections.abc import Callable
from functools import cache

import numpy as np

from flashlib.errors import ShapeError
from flashlib.exercises.exercise import Exercise, Step, expect, expect_close
from flashlib.programs import TkgConfig, attention_tkg
from flashlib.programs.cache_call import decode_slots

# ---- 20.1 ----------------------------------------------------------------------------


def _test_four(answer: object) -> None:
    shape = np.shape(answer)
    expect(shape == (4,), f"the answer has shape {shape}; expected 4 numbers")


def _test_cache(answer: object) -> None:
    expect_close(
        answer[0], 524288, "bytes of cached keys and values, 2 * 1,024 * 128 * 2: it"
    )


def _test_products(answer: object) -> None:
    expect_close(answer[1], 8, "products for the scores, one per block of 128: it")


def _test_scores(answer: object) -> None:
    expect_close(answer[2], 32768, "bytes of scores, 1,024 * 8 in float32: it")


def _test_mask(answer: object) -> None:
    expect_close(answer[3], 8192, "bytes of the mask, 1,024 * 8 flags: it")


def four_costs() -> list[int]:
    """Heads are in what belongs to a column, and not in what belongs to a key."""
    slots, heads, d = 1024, 8, 128
    return [2 * slots * d * 2, slots // 128, slots * heads * 4, slots * heads]


grows = Exercise(
    number="20.1",
    title="What grows?",
    stars=1,
    steps=(
        Step("four numbers", _test_four),
        Step("keys and values that are loaded", _test_cache),
        Step("products for the scores", _test_products),
        Step("scores on chip", _test_scores),
        Step("mask on chip", _test_mask),
    ),
    solution=four_costs,
    wrong={
        "a_copy_for_every_head": [524288 * 8, 64, 32768, 8192],
        "keys_only": [262144, 8, 32768, 8192],
        "products_for_every_head": [524288, 64, 32768, 8192],
        "scores_in_two_bytes": [524288, 8, 16384, 8192],
        "one_mask_for_all": [524288, 8, 32768, 1024],
    },
    value=True,
)

# ---- 20.2 ----------------------------------------------------------------------------


def _columns(answer: Callable, seq: int, n_heads: int, n_kv_heads: int) -> None:
    """Number every entry of q, so that a wrong place can be named."""
    d, group = 2, n_heads // n_kv_heads
    token, head = np.mgrid[:seq, :n_heads]
    q = np.stack([100 * head + token, -(100 * head + token)], -1).astype(np.float32)
    got = np.asarray(answer(q, n_kv_heads), np.float64)
    shape = (n_kv_heads, d, group * seq)
    what = f"{seq} tokens, {n_heads} heads over {n_kv_heads}"
    expect(got.shape == shape, f"{what}: the shape is {got.shape}; expected {shape}")
    for own in range(n_kv_heads):
        want = [100 * (own * group + h) + t for h in range(group) for t in range(seq)]
        row = got[own, 0].astype(int).tolist()
        expect(
            row == want,
            f"{what}: columns of key head {own} hold {row} (100 * head + token); "
            f"expected {want}",
        )
        expect_close(got[own, 1], -got[own, 0], f"{what}: the second component")


def _test_heads(answer: Callable) -> None:
    _columns(answer, 1, 4, 1)


def _test_tokens(answer: Callable) -> None:
    _columns(answer, 3, 1, 1)


def _test_both(answer: Callable) -> None:
    _columns(answer, 3, 2, 1)


def _test_groups(answer: Callable) -> None:
    _columns(answer, 1, 6, 2)
    _columns(answer, 2, 6, 3)


def to_columns(q: np.ndarray, n_kv_heads: int) -> np.ndarray:
    """Split the heads into groups; the width goes first and the tokens last."""
    seq, n_heads, d = q.shape
    split = q.reshape(seq, n_kv_heads, n_heads // n_kv_heads, d)
    return split.transpose(1, 3, 2, 0).reshape(n_kv_heads, d, -1).copy()


def _tokens_first(q: np.ndarray, n_kv_heads: int) -> np.ndarray:
    seq, n_heads, d = q.shape
    split = q.reshape(seq, n_kv_heads, n_heads // n_kv_heads, d)
    return split.transpose(1, 3, 0, 2).reshape(n_kv_heads, d, -1)


def _tile_order(q: np.ndarray, n_kv_heads: int) -> np.ndarray:
    seq, n_heads, d = q.shape
    split = q.reshape(seq, n_heads // n_kv_heads, n_kv_heads, d)
    return split.transpose(2, 3, 1, 0).reshape(n_kv_heads, d, -1)


def _plain_reshape(q: np.ndarray, n_kv_heads: int) -> np.ndarray:
    return q.reshape(n_kv_heads, q.shape[2], -1)


def _one_group(q: np.ndarray, n_kv_heads: int) -> np.ndarray:
    return q.transpose(2, 1, 0).reshape(1, q.shape[2], -1)


def _width_last(q: np.ndarray, n_kv_heads: int) -> np.ndarray:
    return to_columns(q, n_kv_heads).transpose(0, 2, 1)


columns = Exercise(
    number="20.2",
    title="Heads become columns",
    stars=2,
    steps=(
        Step("four heads, one token", _test_heads),
        Step("one head, three tokens", _test_tokens),
        Step("heads and tokens", _test_both),
        Step("several key heads", _test_groups),
    ),
    solution=to_columns,
    wrong={
        "tokens_first": _tokens_first,
        "tile_order": _tile_order,
        "plain_reshape": _plain_reshape,
        "one_group": _one_group,
        "width_last": _width_last,
    },
)

# ---- 20.3 ----------------------------------------------------------------------------


@cache
def _measured(columns: int) -> tuple[bool, int, int]:
    """Run one block of slots with so many heads; count products of two steps."""
    q, k = np.ones((1, columns, 2), np.float32), np.ones((128, 1, 2), np.float32)
    try:
        trace = decode_slots(q, k, k, strided=False).traces[0]
    except ShapeError:
        return False, 0, 0
    counts = trace.histogram(by=("step", "op"))
    return True, counts["mm1", "nc_matmul"], counts["sum", "nc_matmul"]


@cache
def _rotates(columns: int) -> bool:
    """Whether the kernel takes so many heads with the rotation fused."""
    config = TkgConfig(
        curr_sprior=128, full_sprior=128, tp_k_prior=True, use_pos_id=True,
        fuse_rope=True,
    )  # fmt: skip
    q, own = np.ones((1, columns, 1, 64), np.float32), np.ones((1, 1, 1, 64), "f4")
    cache_rows = np.ones((1, 1, 128, 64), np.float32)
    freqs, pos = np.ones((32, 1), np.float32), np.array([[9]])
    call = {"config": config, "pos_ids": pos, "inv_freqs": freqs}
    try:
        attention_tkg(q, own, own, cache_rows, cache_rows, **call)
    except ShapeError:
        return False
    return True


def _limit(answer: Callable, columns: int) -> tuple:
    got = answer(columns)
    expect(
        isinstance(got, (tuple, list)) and len(got) == 4,
        f"the answer is {got!r}; expected a tuple of 4",
    )
    return got


def _test_runs(answer: Callable) -> None:
    for n in (1, 128, 129, 512, 513):
        got, want = bool(_limit(answer, n)[0]), _measured(n)[0]
        expect(got == want, f"{n} columns: it runs is {got}; the kernel says {want}")


def _test_scores_products(answer: Callable) -> None:
    for n in (1, 128, 129, 512, 513):
        got, want = _limit(answer, n)[1], _measured(n)[1]
        expect(got == want, f"{n} columns: {got} products for scores, not {want}")


def _test_sum_products(answer: Callable) -> None:
    for n in (1, 128, 129, 256, 257, 512, 513):
        got, want = _limit(answer, n)[2], _measured(n)[2]
        expect(got == want, f"{n} columns: {got} products for the sum, not {want}")


def _test_rotation(answer: Callable) -> None:
    for n in (1, 128, 129, 513):
        got, want = bool(_limit(answer, n)[3]), _rotates(n)
        expect(got == want, f"{n} columns: rotation is {got}; the kernel says {want}")


def which_limit(columns: int) -> tuple[bool, int, int, bool]:
    """512 columns move; 128 stand still; the fused rotation takes 128."""
    if columns > 512:
        return False, 0, 0, False
    return True, 1, -(-columns // 128), columns <= 128


limit = Exercise(
    number="20.3",
    title="129 columns: which limit bites?",
    stars=3,
    steps=(
        Step("does it run?", _test_runs),
        Step("products for the scores", _test_scores_products),
        Step("products for the sum", _test_sum_products),
        Step("does it run with the rotation fused?", _test_rotation),
    ),
    solution=which_limit,
    wrong={
        "128_for_everything": lambda n: (
            n <= 128,
            int(n <= 128),
            int(n <= 128),
            n <= 128,
        ),
        "scores_in_pieces": lambda n: (
            (n <= 512, -(-n // 128), -(-n // 128), n <= 128)
            if n <= 512
            else (False, 0, 0, False)
        ),
        "sum_in_one": lambda n: (n <= 512, int(n <= 512), int(n <= 512), n <= 128),
        "rotation_has_no_limit": lambda n: (*which_limit(n)[:3], n <= 512),
        "no_bank": lambda n: (True, 1, -(-n // 128), n <= 128),
        "floor_division": lambda n: (
            (True, 1, max(1, n // 128), n <= 128) if n <= 512 else which_limit(n)
        ),
    },
    right={"a list": lambda n: list(which_limit(n))},
)

EXERCISES = (grows, columns, limit)
