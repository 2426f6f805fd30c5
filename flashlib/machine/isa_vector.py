"""Instructions of the vector engine that compute element by element (chapter 16).

Arithmetic reads any type as float32 and rounds once on write. Bit operators take
integers as they are. One operand at most may stand in PSUM.
"""

import numbers

import numpy as np

from flashlib.errors import MachineError, shown
from flashlib.machine import rules
from flashlib.machine.dtypes import BFLOAT16, INT32, INTEGERS, UINT32, as_float32
from flashlib.machine.instruction import Cost, Issue, Meaning, instruction
from flashlib.machine.operators import ARITHMETIC, BITWISE, OPERATORS, apply, named
from flashlib.machine.spec import MIN_CYCLES
from flashlib.machine.tile import ON_CHIP, Tile
from flashlib.machine.trace import Record

__all__ = [
    "WIDE_INTEGERS",
    "at_least_64",
    "bits",
    "reciprocal",
    "scalar_tensor_tensor",
    "tensor_scalar",
    "tensor_tensor",
]

WIDE_INTEGERS = (INT32, UINT32)


def at_least_64(r: Record) -> float:
    """The plain formula: one element per cycle and lane, 64 cycles at least."""
    return max(MIN_CYCLES, r.n)


def _tensor_tensor_cycles(r: Record) -> float:
    a, b = r.reads[:2]
    operands = (a, b, *r.writes)
    quick = all(o.dtype == BFLOAT16 and o.memory == "sbuf" for o in operands) and all(
        o.unit_step for o in operands
    )
    if (a.memory == "psum") != (b.memory == "psum") or quick:
        return max(MIN_CYCLES, r.n)
    return max(MIN_CYCLES, 2 * r.n)


def _integer_engine(values: dict) -> str:
    """All-integer operands in sbuf go to gpsimd, which has integer arithmetic."""
    if values["op"] == "power":
        return "gpsimd"
    tiles = [values[k] for k in ("dst", "data1", "data2")]
    exact = all(
        isinstance(t, Tile) and t.dtype in WIDE_INTEGERS and t.memory == "sbuf"
        for t in tiles
    )
    return "gpsimd" if exact and values["op"] not in BITWISE else "vector"


@instruction(
    engines=("vector", "gpsimd"),
    choose=_integer_engine,
    memory={"data1": ON_CHIP, "data2": ON_CHIP},
    cost=Cost(
        "max(64, N) with exactly one input in psum or all bfloat16 in sbuf; "
        "else max(64, 2N)",
        _tensor_tensor_cycles,
    ),
    limits=(
        "data1, data2: not both in psum; equal partitions and elements",
        "bit operators: integers of one type; power: gpsimd only",
    ),
)
def tensor_tensor(
    issue: Issue, dst: Tile, data1: Tile, data2: Tile, op: str
) -> Meaning:
    """Combine two tiles element by element: ``dst = data1 op data2``."""
    named(OPERATORS, op, "op")
    rules.not_both_in_psum(data1=data1, data2=data2)
    rules.same_partitions(data1=data1, data2=data2, dst=dst)
    rules.same_free_size(data1=data1, data2=data2, dst=dst)
    if op in BITWISE:
        bits(issue, dst=dst, data1=data1, data2=data2)
    elif op == "power" and issue.engine != "gpsimd":
        raise MachineError(
            f"op has 'power' on the {issue.engine} engine; expected engine='gpsimd'; "
            "only gpsimd raises to a power"
        )
    integers = op in BITWISE or (
        issue.engine == "gpsimd" and data1.dtype == data2.dtype in WIDE_INTEGERS
    )

    def combined() -> np.ndarray:
        a, b = rules.matched(data1, data2)
        if integers:
            if op == "power" and (b < 0).any():
                raise MachineError(
                    f"data2 has {b.min()} as an exponent; expected 0 or more; powers "
                    "of integers are integers; cast the operands to float32 first"
                )
            return apply(op, a, b, False)
        return apply(op, as_float32(a), as_float32(b), False)

    return combined


def bits(issue: Issue, **tiles: Tile) -> None:
    """Bit operators run on the vector engine over integers of one type."""
    if issue.engine != "vector":
        raise MachineError(
            f"engine has {issue.engine!r}; expected 'vector'; bit operators run on no "
            "other engine; leave it out"
        )
    first = next(iter(tiles.values()))
    for name, tile in tiles.items():
        rules.one_of(name, tile, INTEGERS, "bit operators take integers uncast")
        rules.one_of(name, tile, (first.dtype,), "bit operators keep one type")


def _scalar_operators(
    issue: Issue, dst: Tile, data: Tile, op0: str, op1: str | None
) -> bool:
    """Check a pair of tensor_scalar operators; true for bit operators."""
    names = (op0,) if op1 is None else (op0, op1)
    if issue.engine == "gpsimd":
        if names != ("rsqrt",):
            raise MachineError(
                f"op0 has {op0!r} on the gpsimd engine; expected 'rsqrt' alone; gpsimd "
                "has no other tensor_scalar operator; use engine='vector'"
            )
        return False
    for name in names:
        named(OPERATORS, name, "op0" if name is op0 else "op1")
    if issue.engine == "scalar" and names not in _SCALAR_ENGINE_PAIRS:
        raise MachineError(
            f"op0 and op1 have {op0!r} and {op1!r} on the scalar engine; expected "
            "multiply then add, multiply, or add; it has no others; use "
            "engine='vector'"
        )
    if len({name in BITWISE for name in names}) > 1:
        raise MachineError(
            f"op0 and op1 have {op0!r} and {op1!r}; expected two arithmetic or two bit "
            "operators; one instruction reads its input in one way; use two"
        )
    if op0 in BITWISE:
        bits(issue, dst=dst, data=data)
        return True
    return False


_SCALAR_ENGINE_PAIRS = (("multiply", "add"), ("multiply",), ("add",))


@instruction(
    engines=("vector", "scalar", "gpsimd"),
    memory={"data": ON_CHIP},
    cost=Cost("max(64, N), one operator or two", at_least_64),
    limits=(
        "operand: a number, or float32 [partitions, 1]",
        "two operators: both arithmetic or both on bits",
        "bit operators: integer constants that the type of data holds",
        "scalar engine: multiply then add, multiply, add; gpsimd: rsqrt",
    ),
)
def tensor_scalar(
    issue: Issue,
    dst: Tile,
    data: Tile,
    op0: str,
    operand0: object = None,
    reverse0: bool = False,
    op1: str | None = None,
    operand1: object = None,
    reverse1: bool = False,
) -> Meaning:
    """Apply one or two operators with per-partition scalars.

    ``dst = (data op0 operand0) op1 operand1``; ``reverse`` swaps the sides.
    """
    rules.same_partitions(data=data, dst=dst)
    rules.same_free_size(data=data, dst=dst)
    reverse0 = rules.flag("reverse0", reverse0)
    reverse1 = rules.flag("reverse1", reverse1)
    if _scalar_operators(issue, dst, data, op0, op1):
        steps = [("operand0", op0, operand0, reverse0)]
        if op1 is not None:
            steps.append(("operand1", op1, operand1, reverse1))
        return _bit_scalars(data, steps)
    if op0 == "rsqrt":
        return lambda: 1 / np.sqrt(as_float32(data.array))
    steps = [(op0, rules.vector("operand0", operand0, data), reverse0)]
    if op1 is not None:
        steps.append((op1, rules.vector("operand1", operand1, data), reverse1))

    def applied() -> np.ndarray:
        x = as_float32(data.array)
        for name, operand, reverse in steps:
            x = apply(name, x, rules.lanes(operand, x.ndim), reverse)
        return x

    return applied


def _bit_scalars(data: Tile, steps: list[tuple]) -> Meaning:
    """Bit operators take integer constants of the type of their data."""
    steps = [
        (op, _bit_constant(name, value, data.dtype), reverse)
        for name, op, value, reverse in steps
    ]

    def applied() -> np.ndarray:
        x = data.array
        for op, value, reverse in steps:
            x = apply(op, x, value, reverse)
        return x

    return applied


def _bit_constant(name: str, value: object, dtype: np.dtype) -> np.integer:
    """The bits of a constant, none of them cut off."""
    if not isinstance(value, numbers.Integral):
        raise MachineError(
            f"{name} has type {type(value).__name__}; expected an integer "
            "constant; bit operators take no float32 operand; pass an integer"
        )
    ends, value = np.iinfo(dtype), int(value)
    if not ends.min <= value <= ends.max:
        raise MachineError(
            f"{name} has {shown(value)}; expected {ends.min} to {ends.max}, what "
            f"{dtype.name} holds; bit operators take the bits of a constant as they "
            "are; mask it to the width of the type"
        )
    return dtype.type(value)


def _fused_cycles(r: Record) -> float:
    data, other = r.read("data"), r.read("operand1")
    quick = r.n % 2 == 0 and data.dtype == other.dtype == BFLOAT16 and r.rate == 2
    return r.n if quick else 2 * r.n


@instruction(
    engines=("vector",),
    memory={"data": ON_CHIP, "operand1": ON_CHIP},
    cost=Cost("2N; N for bfloat16 subtract then multiply with even N", _fused_cycles),
    limits=(
        "data, operand1: not both in psum; equal partitions and elements",
        "operand0: a number, or float32 [partitions, 1]",
    ),
)
def scalar_tensor_tensor(
    issue: Issue,
    dst: Tile,
    data: Tile,
    op0: str,
    operand0: object,
    op1: str,
    operand1: Tile,
    reverse0: bool = False,
    reverse1: bool = False,
) -> Meaning:
    """Scale by a per-partition scalar, then combine with a tile.

    ``dst = (data op0 operand0) op1 operand1``.
    """
    named(ARITHMETIC, op0, "op0")
    named(ARITHMETIC, op1, "op1")
    rules.not_both_in_psum(data=data, operand1=operand1)
    rules.same_partitions(data=data, operand1=operand1, dst=dst)
    rules.same_free_size(data=data, operand1=operand1, dst=dst)
    reverse0 = rules.flag("reverse0", reverse0)
    reverse1 = rules.flag("reverse1", reverse1)
    scalar = rules.vector("operand0", operand0, data)
    issue.rate = 2.0 if (op0, op1) == ("subtract", "multiply") else 1.0

    def applied() -> np.ndarray:
        a, b = rules.matched(data, operand1)
        x = apply(op0, as_float32(a), rules.lanes(scalar, a.ndim), reverse0)
        return apply(op1, x, as_float32(b), reverse1)

    return applied


@instruction(
    engines=("vector",),
    memory={"data": ON_CHIP},
    cost=Cost("max(64, 8N)", lambda r: max(MIN_CYCLES, 8 * r.n)),
)
def reciprocal(issue: Issue, dst: Tile, data: Tile) -> Meaning:
    """Divide 1 by each element: ``dst = 1 / data``."""
    rules.same_partitions(data=data, dst=dst)
    rules.same_free_size(data=data, dst=dst)
    return lambda: np.float32(1) / as_float32(data.array)
