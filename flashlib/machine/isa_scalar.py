"""Instructions of the scalar engine: functions of one variable (chapter 16).

``f(x * scale + bias)`` costs one pass, whatever ``f``. A running sum per lane comes
along in 128 registers that survive from one instruction to the next.
"""

import numpy as np

from flashlib.errors import MachineError, UninitializedError
from flashlib.machine import rules
from flashlib.machine.dtypes import as_float32
from flashlib.machine.instruction import Cost, Issue, Meaning, instruction
from flashlib.machine.isa_reduce import result_column
from flashlib.machine.operators import FUNCTIONS, named
from flashlib.machine.spec import MIN_CYCLES
from flashlib.machine.tile import ON_CHIP, Tile
from flashlib.machine.trace import Record

__all__ = ["REDUCE_COMMANDS", "activation", "activation_reduce"]

REDUCE_COMMANDS = ("idle", "reset", "reduce", "reset_reduce")
_LIMITS = (
    "scale: a number, or float32 [partitions, 1]",
    "bias: any float [partitions, 1]; a number from generation 3 on",
    "reduce_op: add; reduce_res: [partitions, 1]",
    "sin: correct on [-pi, pi] only, and silently wrong beyond",
)


def _activation_cycles(r: Record) -> float:
    read_out = MIN_CYCLES if len(r.writes) > 1 else 0
    return max(MIN_CYCLES, r.n) + read_out


def _affine(issue: Issue, dst: Tile, op: str, data: Tile, bias, scale):
    """Check one activation; return a function that computes it."""
    function = named(FUNCTIONS, op, "op")
    rules.same_partitions(data=data, dst=dst)
    rules.same_free_size(data=data, dst=dst)
    factor = rules.vector("scale", scale, data)
    shift = None
    if bias is not None:
        if not isinstance(bias, Tile):
            rules.generation(
                3, "constant bias; pass a [partitions, 1] tile", issue.spec
            )
        shift = rules.vector("bias", bias, data, floats=True)

    def activated() -> np.ndarray:
        x = as_float32(data.array)
        if isinstance(factor, Tile) or factor != 1:
            x = x * rules.lanes(factor, x.ndim)
        if shift is not None:
            x = x + rules.lanes(shift, x.ndim)
        return function(x)

    return activated


def _known_command(reduce_cmd: str) -> None:
    if reduce_cmd not in REDUCE_COMMANDS:
        raise MachineError(
            f"reduce_cmd has {reduce_cmd!r}; expected one of "
            f"{', '.join(REDUCE_COMMANDS)}; the registers know no other command; name "
            "one of these"
        )


def _only_add(reduce_op: str | None) -> None:
    if reduce_op != "add":
        raise MachineError(
            f"reduce_op has {reduce_op!r}; expected 'add'; the registers of the scalar "
            "engine only sum; use tensor_reduce for others"
        )


@instruction(
    engines=("scalar",),
    memory={"data": ON_CHIP, "reduce_res": ON_CHIP},
    writes=("dst", "reduce_res"),
    cost=Cost("max(64, N), and 64 to read the registers out", _activation_cycles),
    limits=_LIMITS,
)
def activation(
    issue: Issue,
    dst: Tile,
    op: str,
    data: Tile,
    bias: object = None,
    scale: object = 1.0,
    reduce_op: str | None = None,
    reduce_res: Tile | None = None,
    reduce_cmd: str = "idle",
) -> Meaning:
    """Apply ``f(data * scale + bias)``.

    ``reduce_cmd`` drives the sum registers: ``idle``, ``reset``, ``reduce`` (add the
    row to them) or ``reset_reduce``; ``reduce_res`` reads them out.
    """
    activated = _affine(issue, dst, op, data, bias, scale)
    _known_command(reduce_cmd)
    sums = reduce_cmd in ("reduce", "reset_reduce")
    if sums or reduce_op is not None:
        _only_add(reduce_op)
    result_column(reduce_res, data)
    rows = slice(data.start, data.start + data.partitions)
    registers = issue.machine.sum_registers
    fresh = reduce_cmd in ("reset", "reset_reduce")
    used = sums or reduce_res is not None
    if used and not fresh and not issue.machine.sums_known[rows].all():
        raise UninitializedError(
            f"reduce_cmd has {reduce_cmd!r}; expected 'reset_reduce' or an earlier "
            "reset; the sum registers hold nothing yet; reset them first"
        )

    def computed() -> dict[str, np.ndarray]:
        out = activated()
        if fresh:
            registers[rows] = 0
            issue.machine.sums_known[rows] = True
        if sums:
            registers[rows] += out.reshape(out.shape[0], -1).sum(1)
        if reduce_res is None:
            return {"dst": out}
        return {"dst": out, "reduce_res": registers[rows].copy()}

    return computed


@instruction(
    engines=("scalar",),
    memory={"data": ON_CHIP, "reduce_res": ON_CHIP},
    writes=("dst", "reduce_res"),
    cost=Cost("max(64, N) + 64", _activation_cycles),
    limits=_LIMITS,
)
def activation_reduce(
    issue: Issue,
    dst: Tile,
    op: str,
    data: Tile,
    reduce_op: str,
    reduce_res: Tile,
    bias: object = None,
    scale: object = 1.0,
) -> Meaning:
    """Apply ``f(data * scale + bias)`` and sum each row, before rounding to dst."""
    activated = _affine(issue, dst, op, data, bias, scale)
    _only_add(reduce_op)
    result_column(reduce_res, data)
    rows = slice(data.start, data.start + data.partitions)
    registers = issue.machine.sum_registers

    def computed() -> dict[str, np.ndarray]:
        out = activated()
        registers[rows] = out.reshape(out.shape[0], -1).sum(1)
        issue.machine.sums_known[rows] = True
        return {"dst": out, "reduce_res": registers[rows].copy()}

    return computed
