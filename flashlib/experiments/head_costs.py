"""Count what one more query head costs the decode kernel (chapter 20)."""

from functools import cache

import numpy as np

from flashlib.machine.dtypes import BFLOAT16
from flashlib.machine.trace import Operand
from flashlib.programs.cache_call import decode_slots

__all__ = ["SLOTS", "WIDTH", "head_costs"]

SLOTS, WIDTH = 256, 16


@cache
def head_costs(
    n_heads: int, seq: int, slots: int = SLOTS, width: int = WIDTH
) -> dict[str, int]:
    """Run the decode kernel in bfloat16 and read its costs off the trace.

    Parameters
    ----------
    n_heads, seq : int
        Query heads over one key/value head, and new tokens.
    slots, width : int
        Length of the cache and head_dim.

    Returns
    -------
    dict of str to int
        ``loaded`` bytes of keys and values, the bytes on chip of ``scores``,
        ``exponentials`` and ``mask``, the products of three steps, and the transposes
        behind the maximum.
    """
    rng = np.random.default_rng(20)
    shapes = (seq, n_heads, width), (slots, 1, width), (slots, 1, width)
    draws = (rng.standard_normal(shape) for shape in shapes)
    call = (x.astype(BFLOAT16) for x in draws)
    trace = decode_slots(*call, strided=False).traces[0]
    counts = trace.histogram(by=("step", "op"))
    first = {(r.step, r.op): r for r in reversed(trace.records)}
    masked = (r for r in trace if r.op == "tensor_copy_predicated")
    return {
        "loaded": trace.bytes(step="k_load") + trace.bytes(step="v_load"),
        "scores": _bytes(first["mm1", "memset"].writes[0]),
        "exponentials": _bytes(first["exp", "activation"].writes[0]),
        "mask": sum(_bytes(r.read("predicate")) for r in masked),
        "mm1": counts["mm1", "nc_matmul"],
        "sum": counts["sum", "nc_matmul"],
        "mm2": counts["mm2", "nc_matmul"],
        "transposes": counts["max", "nc_transpose"],
    }


def _bytes(operand: Operand) -> int:
    """Return how many bytes an operand takes on chip."""
    return int(np.prod(operand.shape)) * operand.dtype.itemsize
