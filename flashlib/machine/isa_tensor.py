"""Instructions of the tensor engine: matrix product and transpose (chapter 15).

The engine reads SBUF and writes PSUM, nothing else. Partitions are the
contraction axis of both operands of a product.
"""

import numpy as np

from flashlib.errors import (
    DTypeError,
    FreeSizeError,
    MachineError,
    PartitionError,
    UninitializedError,
)
from flashlib.machine import rules
from flashlib.machine.dtypes import BFLOAT16, FLOAT8, FLOAT32, FLOATS, as_float32
from flashlib.machine.instruction import PSUM, SBUF, Cost, Issue, Meaning, instruction
from flashlib.machine.spec import MIN_CYCLES, Spec
from flashlib.machine.storage import PRODUCT, UNWRITTEN, WRITTEN
from flashlib.machine.tile import ON_CHIP, Tile
from flashlib.machine.trace import Record

__all__ = ["load_stationary_cycles", "nc_matmul", "nc_transpose"]

#: Combinations of generation and operand types that have passed the check.
_LEGAL_TYPES: set[tuple] = set()


def _matmul_cycles(r: Record) -> float:
    stationary, moving = r.reads
    wide = 2 if stationary.shape[1:-1] == (2,) and r.rate == 2 else 1
    cycles = max(min(MIN_CYCLES, stationary.n // wide), moving.n // wide)
    return cycles * (4 if moving.dtype == FLOAT32 else 1)


def load_stationary_cycles(record: Record) -> float:
    """Cycles to load the stationary operand of a matmul; they overlap with others.

    Every nc_matmul issues two instructions, the load and the moving pass. The
    guides call the load up to four times faster than a moving pass of its size;
    taking that factor as exact is ours. It is not part of ``cycles``.
    """
    return record.reads[0].n / 4


@instruction(
    engines=("tensor",),
    memory={"dst": PSUM, "stationary": SBUF, "moving": SBUF},
    leaves=PRODUCT,
    cost=Cost("max(min(64, M), N), four times that for float32", _matmul_cycles),
    limits=(
        "contraction (partitions of both operands): equal, at most 128",
        "M: at most 128; N: at most 512 (4,096 on NeuronCore-v4)",
        "dst: float32 [M, N] in one bank (bfloat16 too on NeuronCore-v4)",
        "operands: floating types; float32 only with float32",
        "accumulate=True: dst has been written by a matmul before",
    ),
)
def nc_matmul(
    issue: Issue,
    dst: Tile,
    stationary: Tile,
    moving: Tile,
    accumulate: bool | None = None,
    perf_mode: str | None = None,
) -> Meaning:
    """Multiply: ``dst[M, N] (+)= stationary[K, M].T @ moving[K, N]`` in float32.

    ``accumulate`` False overwrites, True adds; None overwrites on the first matmul
    into that place of the PSUM tensor and adds from then on. With
    ``perf_mode="double_row"`` (float8, generation 3 on) operands are ``[K, 2, M]``
    and ``[K, 2, N]`` and contract over both.
    """
    if accumulate is not None:
        accumulate = rules.flag("accumulate", accumulate)
    double = 1
    if perf_mode is not None:
        double = _double_row(issue.spec, perf_mode, stationary, moving)
    _product_sizes(issue.spec, dst, stationary, moving, double)
    types = (
        issue.spec.generation,
        *(t.storage.dtype for t in (dst, stationary, moving)),
    )
    if types not in _LEGAL_TYPES:
        _product_types(issue.spec, dst, stationary, moving)
        _LEGAL_TYPES.add(types)
    if issue.spec.generation < 4:
        rules.one_bank("dst", dst, issue.spec)
    add = _accumulates(issue.spec, dst, accumulate)
    issue.rate = float(double)

    def product() -> np.ndarray:
        left = _contracted(stationary, double)
        out = left.T @ _contracted(moving, double)
        if out.shape != dst.array.shape:
            out = out.reshape(dst.array.shape)
        if add is False:
            return out
        old = as_float32(dst.array)
        return old + out if add is True else np.where(add, old + out, out)

    return product


def _contracted(tile: Tile, double: int) -> np.ndarray:
    """An operand as float32 ``[contraction, columns]``."""
    array = as_float32(tile.array)
    if array.ndim == 2 and double == 1:
        return array
    return array.reshape(tile.partitions * double, -1)


def _double_row(spec: Spec, mode: str | None, stationary: Tile, moving: Tile) -> int:
    """Check the doubled float8 mode; return its 2 rows per partition."""
    if mode != "double_row":
        raise MachineError(
            f"perf_mode has {mode!r}; expected None or 'double_row'; the array knows "
            "no other; leave it out"
        )
    rules.generation(3, "double_row mode; leave perf_mode out", spec)
    for name, tile in (("stationary", stationary), ("moving", moving)):
        rules.one_of(name, tile, (FLOAT8,), "double_row packs float8 pairs")
        if tile.ndim != 3 or tile.shape[1] != 2:
            raise FreeSizeError(
                f"{name} has shape {tile.shape}; expected [partitions, 2, columns]; "
                "double_row contracts over two rows per partition; reshape it"
            )
    return 2


def _product_sizes(
    spec: Spec, dst: Tile, stationary: Tile, moving: Tile, double: int
) -> None:
    m, n = stationary.free_size // double, moving.free_size // double
    if stationary.partitions != moving.partitions:
        raise PartitionError(
            f"moving has {moving.partitions} partitions; expected "
            f"{stationary.partitions} like stationary; both contract over the "
            "partition axis; cut windows of one height"
        )
    if m > spec.stationary_max:
        _refuse_columns("stationary", m, spec.stationary_max, "the array's columns")
    if n > spec.moving_max:
        _refuse_columns("moving", n, spec.moving_max, "what one pass takes")
    if dst.partitions != m:
        raise PartitionError(
            f"dst has {dst.partitions} partitions; expected {m}; columns of "
            "stationary become partitions of dst; cut dst to that height"
        )
    if dst.free_size != n:
        raise FreeSizeError(
            f"dst has {dst.free_size} elements per partition; expected {n}; columns "
            "of moving become columns of dst; cut dst to that width"
        )


def _refuse_columns(name: str, size: int, most: int, what: str) -> None:
    raise FreeSizeError(
        f"{name} has {size} columns; expected at most {most}; that is {what}; split "
        f"{name} into windows of {most} columns"
    )


def _product_types(spec: Spec, dst: Tile, stationary: Tile, moving: Tile) -> None:
    out = (FLOAT32, BFLOAT16) if spec.generation >= 4 else (FLOAT32,)
    rules.one_of("dst", dst, out, "products accumulate in float32")
    rules.one_of("stationary", stationary, FLOATS, "the array multiplies floats")
    rules.one_of("moving", moving, FLOATS, "the array multiplies floats")
    if (stationary.dtype == FLOAT32) != (moving.dtype == FLOAT32):
        raise DTypeError(
            f"stationary and moving have dtypes {stationary.dtype.name} and "
            f"{moving.dtype.name}; expected float32 on both or on neither; the array "
            "runs float32 in four passes; cast one operand with tensor_copy"
        )


def _accumulates(spec: Spec, dst: Tile, accumulate: bool | None) -> bool | np.ndarray:
    """Decide per element: False overwrites, True adds."""
    if accumulate is False:
        return False
    state = dst.state
    marks = state.tobytes()
    unwritten = marks.count(UNWRITTEN)
    if unwritten == len(marks) and accumulate is None:
        return False
    if marks.count(PRODUCT) == len(marks):
        return True
    if accumulate and unwritten:
        raise UninitializedError(
            "accumulate has True; expected dst written by a matmul before; there is "
            "nothing to add to; start with accumulate=False or None"
        )
    if spec.generation < 4 and WRITTEN in marks:
        raise MachineError(
            f"accumulate has {accumulate}; expected dst written by matmuls only; "
            "adding to psum that another instruction filled is undefined on "
            f"{spec.name}; start with accumulate=False, or add on the vector engine"
        )
    return state != UNWRITTEN


def _transpose_cycles(r: Record) -> float:
    data = r.reads[0]
    if r.engine == "tensor":
        return max(data.shape[0], min(MIN_CYCLES, data.n))
    return max(MIN_CYCLES, data.n)


def _transpose_engine(values: dict) -> str:
    """The tensor engine where it can reach, else the vector engine."""
    memories = [getattr(values[k], "memory", None) for k in ("data", "dst")]
    return "tensor" if memories == ["sbuf", "psum"] else "vector"


@instruction(
    engines=("tensor", "vector"),
    choose=_transpose_engine,
    memory={"data": ON_CHIP},
    cost=Cost(
        "tensor: max(P, min(64, F)); vector: max(64, N)",
        _transpose_cycles,
    ),
    limits=(
        "tensor engine: at most 128 x 128, from sbuf to psum, dst in one bank",
        "vector engine: at most 32 x 32",
        "dst and data: one type",
    ),
)
def nc_transpose(issue: Issue, dst: Tile, data: Tile) -> Meaning:
    """Transpose: ``dst[F, P] = data[P, F].T``; several free axes count as one.

    On NeuronCore-v2 the tensor engine multiplies by an identity, so one NaN or
    infinity spoils its whole row of dst (0 times infinity); from v3 on it moves
    the bits.
    """
    tensor = issue.engine == "tensor"
    if tensor:
        _array_reaches(dst, data)
        rules.one_bank("dst", dst, issue.spec)
    most = issue.spec.partitions if tensor else issue.spec.vector_transpose_max
    p, f = data.partitions, data.free_size
    if max(p, f) > most:
        error = PartitionError if p > most else FreeSizeError
        raise error(
            f"data has shape {p} x {f}; expected at most {most} x {most}; the "
            f"{issue.engine} engine transposes no more at once; transpose it in blocks"
        )
    _flipped(dst, p, f)
    rules.same_dtype("a transpose moves bits", data=data, dst=dst)
    identity = tensor and issue.spec.generation == 2

    def transposed() -> np.ndarray:
        flat = rules.rows(data)
        if not identity:
            return flat.T
        return as_float32(flat).T @ np.eye(p, dtype=np.float32)

    return transposed


def _flipped(dst: Tile, p: int, f: int) -> None:
    """Rows of dst are columns of data, and the other way round."""
    if dst.partitions != f:
        raise PartitionError(
            f"dst has {dst.partitions} partitions; expected {f}; columns of data "
            "become partitions; cut dst to that height"
        )
    if dst.free_size != p:
        raise FreeSizeError(
            f"dst has {dst.free_size} elements per partition; expected {p}; "
            "partitions of data become columns; cut dst to that width"
        )


def _array_reaches(dst: Tile, data: Tile) -> None:
    """The tensor engine reads sbuf and writes psum."""
    for name, tile, memory in (("data", data, "sbuf"), ("dst", dst, "psum")):
        if tile.memory != memory:
            rules.refuse_memory(name, tile.memory, memory, "the tensor engine")
