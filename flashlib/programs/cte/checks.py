"""Refuse what the prefill kernel cannot run, before anything runs (chapter 23)."""

import math

import numpy as np

from flashlib.errors import ArgumentError, DTypeError, ShapeError, shown
from flashlib.machine.dtypes import BFLOAT16, FLOAT16, FLOAT32
from flashlib.programs.blocks import PARTITIONS
from flashlib.programs.cte.sizes import POSITIONS, CteSizes
from flashlib.programs.refusals import as_array, check_whole, finite

__all__ = [
    "LONGEST",
    "MOST_ITEMS",
    "MOST_PARTS",
    "TYPES",
    "check_array",
    "check_bound",
    "check_sizes",
    "checked_column",
    "checked_positions",
    "checked_prior_used",
    "checked_scale",
]

TYPES = (FLOAT32, FLOAT16, BFLOAT16)
LONGEST = 131072
MOST_ITEMS = 512
MOST_PARTS = 32


def check_array(name: str, x: np.ndarray, axes: str) -> None:
    """Three axes of 1 or more, and a type that the kernel reads."""
    if x.dtype not in TYPES:
        raise DTypeError(
            f"{name} has dtype {x.dtype.name}; expected float32, float16 or bfloat16; "
            "all become bfloat16 on chip; cast it"
        )
    if x.ndim != 3 or min(x.shape) < 1:
        raise ShapeError(
            f"{name} has shape {x.shape}; expected {axes} with sizes of 1 or more; "
            "heads are folded into the batch; reshape it"
        )


def check_sizes(s: CteSizes) -> None:
    """Limits of partitions, batch and lengths."""
    if s.head_dim > PARTITIONS:
        raise ShapeError(
            f"head_dim has {s.head_dim}; expected at most 128; it lies on the "
            "partitions; wider heads run on the CPU only"
        )
    if s.batch > MOST_ITEMS or s.batch % s.batch_kv != 0:
        raise ShapeError(
            f"batch has {s.batch} over {s.batch_kv} key/value rows; expected at most "
            f"{MOST_ITEMS} and a multiple; row b reads key/value row b // (B / Bkv); "
            "split the batch"
        )
    lengths = {"seq_q": s.seq_q, "seq_k": s.seq_k, "seq_prior": s.prior}
    for name, length in lengths.items():
        if length > LONGEST:
            raise ShapeError(
                f"{name} has {length}; expected at most {LONGEST}; longer sequences "
                "are cut outside; merge the results of the pieces"
            )
    _check_positions(s)


def _check_positions(s: CteSizes) -> None:
    """Where the rows may sit."""
    if s.q_offset < 0 or not 1 <= s.q_stride <= MOST_PARTS:
        raise ArgumentError(
            f"q_offset has {s.q_offset} and q_stride {s.q_stride}; expected 0 or more, "
            f"and 1 to {MOST_PARTS}; row i sits at q_offset + i * q_stride; count "
            "positions from 0"
        )
    last = s.q_offset + (s.seq_q - 1) * s.q_stride
    if last >= POSITIONS:
        raise ArgumentError(
            f"q_offset has {s.q_offset}, and the last row sits at {last}; expected "
            f"less than {POSITIONS}; positions are compared in float32, exact below; "
            "shorten the prefix"
        )
    _check_masks(s)


def _check_masks(s: CteSizes) -> None:
    """What window, bounds and a moved diagonal exclude."""
    if s.window is not None and s.window < 1:
        raise ArgumentError(
            f"window has {s.window}; expected 1 or more; it counts the row itself; "
            "leave it out for no window"
        )
    if not s.causal and (s.window is not None or s.moved):
        raise ArgumentError(
            "causal has False with window, q_offset or q_stride; expected True; they "
            "count from the diagonal; set causal=True"
        )
    if s.packed and (s.prior > 0 or s.moved):
        raise ArgumentError(
            "bound_min or bound_max has values beside a prefix, q_offset or q_stride; "
            "expected neither; bounds count keys of the call; leave one of the two out"
        )


def checked_positions(
    window: object, q_offset: object, q_stride: object
) -> tuple[int | None, int, int]:
    """Integers that say where the rows sit and how far they look back."""
    check_whole(q_offset=q_offset, q_stride=q_stride)
    if window is not None:
        check_whole(window=window)
        window = min(int(window), POSITIONS)  # no two positions are so far apart
    return window, int(q_offset), int(q_stride)


def checked_scale(scale: float | None, s: CteSizes) -> float:
    """1/sqrt(d) unless given; 1 alone where the mask acts before the scale."""
    outside = s.window is not None or s.prior > 0 or s.packed
    if scale is not None:
        scale = finite("scale", scale)
    if outside and scale != 1.0:
        raise ArgumentError(
            f"scale has {scale} with window, prior or bounds; expected 1.0; "
            "range_select takes scores as they leave the product; scale q yourself and "
            "say scale=1.0"
        )
    return 1 / math.sqrt(s.head_dim) if scale is None else scale


def checked_column(name: str, x: np.ndarray, rows: int) -> np.ndarray:
    """A column of numbers, one per row, in float32."""
    if x.shape != (rows, 1):
        raise ShapeError(
            f"{name} has shape {x.shape}; expected ({rows}, 1); one value per row; "
            "reshape it to a column"
        )
    if x.dtype.kind not in "iuf" and x.dtype not in TYPES:
        raise DTypeError(
            f"{name} has dtype {x.dtype.name}; expected numbers; they are compared in "
            "float32; cast it"
        )
    with np.errstate(over="ignore"):
        x = x.astype(np.float32)
    if np.isnan(x).any():
        raise ArgumentError(
            f"{name} has NaN; expected numbers; nothing compares with NaN; repair the "
            "row"
        )
    return x


def check_bound(name: str, x: np.ndarray) -> None:
    """A bound is the number of a key; an infinite one leaves its side open."""
    wrong = x[np.isfinite(x) & (x != np.floor(x))]
    if wrong.size > 0:
        raise ArgumentError(
            f"{name} has {wrong[:1].tolist()}; expected integers; it is the number of "
            "a key; round it"
        )


def checked_prior_used(value: object, prior: int) -> int:
    """An int, or an array of one, from 0 to the length of the prefix."""
    array = as_array("prior_used_len", value)
    if array.size != 1 or array.ndim > 1 or array.dtype.kind not in "iu":
        raise ShapeError(
            f"prior_used_len has {shown(value)}; expected an integer or shape (1,); "
            "one length for all rows; pass int(length)"
        )
    used = int(array.reshape(-1)[0])
    if not 0 <= used <= prior:
        raise ArgumentError(
            f"prior_used_len has {used}; expected 0 to {prior}; k_prior has {prior} "
            "rows; pass the number of rows that are filled"
        )
    return used
