"""Check shapes and types of operands and say what would fit (chapter 15).

Each rule raises the error of its kind; the message names the operand, its value,
the limit and a way out. Nothing has been changed when a rule refuses.
"""

import numbers
from collections.abc import Sequence

import numpy as np

from flashlib.errors import (
    BankError,
    DTypeError,
    FreeSizeError,
    MachineError,
    PartitionError,
    PlacementError,
    UninitializedError,
    shown,
)
from flashlib.machine.dtypes import FLOATS, as_float32
from flashlib.machine.spec import Spec
from flashlib.machine.tile import Tile

__all__ = [
    "START_RULE",
    "all_written",
    "constant",
    "flag",
    "free_size",
    "generation",
    "lanes",
    "matched",
    "not_both_in_psum",
    "one_bank",
    "one_of",
    "refuse_memory",
    "refuse_width",
    "rows",
    "same_dtype",
    "same_free_size",
    "same_partitions",
    "start_partition",
    "vector",
    "written",
]

START_RULE = (
    "up to 32 partitions start at a multiple of 32, up to 64 at 0 or 64, more at 0"
)


def start_partition(name: str, tile: Tile) -> None:
    """Refuse a window that the engines cannot address."""
    count, start = tile.array.shape[0], tile.start
    step = 32 if count <= 32 else 64 if count <= 64 else 128
    if start % step:
        raise PartitionError(
            f"{name} has start partition {start} and {count} partitions; expected a "
            f"start of {', '.join(str(s) for s in range(0, 128, step))}; "
            f"{START_RULE}; move the rows with a dma, which has no such rule"
        )


def free_size(name: str, tile: Tile, spec: Spec) -> None:
    """Refuse more elements per partition, or more axes, than a pattern holds."""
    n = tile.free_size
    psum = tile.storage.memory == "psum"
    limit = spec.psum_elements_max if psum else spec.sbuf_elements_max
    if n > limit:
        raise FreeSizeError(
            f"{name} has {n} elements per partition; expected at most {limit}; one "
            f"instruction addresses {limit} in {tile.memory}; split it"
        )
    if tile.ndim - 1 > spec.pattern_dims_max and _axes(tile) > spec.pattern_dims_max:
        raise FreeSizeError(
            f"{name} has {_axes(tile)} free axes that do not join; expected at most "
            f"{spec.pattern_dims_max}; an access pattern is 4-d at most; split the "
            "instruction"
        )


def _axes(tile: Tile) -> int:
    """Free axes left after joining those that lie back to back."""
    axes, inner = 0, None
    for n, step in zip(tile.shape[:0:-1], tile.array.strides[:0:-1], strict=True):
        if n > 1 and step != inner:
            axes += 1
        if n > 1:
            inner = step * n
    return axes


def same_partitions(**tiles: Tile) -> None:
    """All operands cover the same number of partitions."""
    (first, a), *others = tiles.items()
    for name, b in others:
        if b.array.shape[0] != a.array.shape[0]:
            raise PartitionError(
                f"{name} has {b.partitions} partitions; expected {a.partitions} like "
                f"{first}; lanes do not cross; cut windows of one height"
            )


def same_free_size(**tiles: Tile) -> None:
    """All operands have the same number of elements per partition."""
    (first, a), *others = tiles.items()
    for name, b in others:
        if b.array.shape != a.array.shape and b.free_size != a.free_size:
            raise FreeSizeError(
                f"{name} has {b.free_size} elements per partition; expected "
                f"{a.free_size} like {first}; elements are paired one to one; repeat "
                "axes of size 1 with broadcast_to"
            )


def same_dtype(why: str, **tiles: Tile) -> None:
    """Two operands have one type."""
    (first, a), (name, b) = tiles.items()
    if b.dtype != a.dtype:
        raise DTypeError(
            f"{name} has dtype {b.dtype.name}; expected {a.dtype.name} like {first}; "
            f"{why}; cast with tensor_copy first"
        )


def one_of(name: str, tile: Tile, allowed: Sequence[np.dtype], why: str) -> None:
    """The type of an operand is among those allowed."""
    if tile.storage.dtype not in allowed:
        raise DTypeError(
            f"{name} has dtype {tile.dtype.name}; expected "
            f"{' or '.join(t.name for t in allowed)}; {why}; cast with tensor_copy "
            "first"
        )


def not_both_in_psum(**tiles: Tile) -> None:
    """A vector instruction has one read port into psum."""
    if all(t.memory == "psum" for t in tiles.values()):
        names = " and ".join(tiles)
        raise PlacementError(
            f"{names} have memory psum; expected it for at most one of them; the "
            "engine reads one operand from psum at a time; copy one to sbuf first"
        )


def vector(name: str, value: object, data: Tile, *, floats: bool = False) -> object:
    """A number, or one float32 per partition; returned ready to broadcast.

    With ``floats`` the vector may have any floating type.
    """
    if not isinstance(value, Tile):
        return constant(name, value)
    if value.partitions != data.partitions:
        raise PartitionError(
            f"{name} has {value.partitions} partitions; expected {data.partitions} "
            "like data; it holds one value per partition; cut it to the same height"
        )
    if value.free_size != 1:
        raise FreeSizeError(
            f"{name} has {value.free_size} elements per partition; expected 1; a "
            "vector operand is [partitions, 1]; use tensor_tensor for whole tiles"
        )
    one_of(name, value, FLOATS if floats else FLOATS[:1], "a vector operand")
    return value


def constant(name: str, value: object) -> np.float32:
    """A compile-time number, held as float32."""
    if isinstance(value, numbers.Real):
        try:
            return np.float32(value)
        except OverflowError:
            raise MachineError(
                f"{name} has {shown(value)}; expected a number that float32 holds; "
                "engines compute in float32; use a smaller one, or infinity"
            ) from None
    raise MachineError(
        f"{name} has type {type(value).__name__}; expected a number or a tensor of the "
        "machine; constants are fixed before the program runs; put arrays in sbuf"
    )


def flag(name: str, value: object) -> bool:
    """Return a switch of an instruction; only a Python or NumPy bool is one."""
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    raise MachineError(
        f"{name} has {shown(value)}; expected True or False; it is one bit of the "
        "instruction; convert it with bool()"
    )


def lanes(value: object, axes: int) -> object:
    """Shape a vector operand so that it broadcasts over ``axes`` axes."""
    if not isinstance(value, Tile):
        return value
    return as_float32(value.array).reshape((-1,) + (1,) * (axes - 1))


def rows(tile: Tile) -> np.ndarray:
    """The elements as ``[partitions, elements]``."""
    array = tile.array
    return array if array.ndim == 2 else array.reshape(array.shape[0], -1)


def matched(a: Tile, b: Tile) -> tuple[np.ndarray, np.ndarray]:
    """Two operands in shapes that NumPy pairs element by element."""
    if a.array.shape == b.array.shape:
        return a.array, b.array
    return rows(a), rows(b)


def one_bank(name: str, tile: Tile, spec: Spec) -> None:
    """What the tensor engine writes at once lies in one accumulation bank."""
    if tile.storage.row_bytes <= spec.psum_bank_bytes:
        return
    steps = zip(tile.shape[1:], tile.array.strides[1:], strict=True)
    reach = [(n - 1) * step for n, step in steps]
    lo = tile.storage.offset + tile.at - tile.start * tile.storage.row_bytes
    hi = lo + sum(max(0, r) for r in reach) + tile.dtype.itemsize
    first = (lo + sum(min(0, r) for r in reach)) // spec.psum_bank_bytes
    last = (hi - 1) // spec.psum_bank_bytes
    if first != last:
        raise BankError(
            f"{name} has columns in banks {first} to {last}; expected one bank; a bank "
            f"is {spec.psum_bank_bytes} bytes per partition, 512 float32; split the "
            "columns at the bank"
        )


def all_written(name: str, tile: Tile) -> None:
    """Every element of an input has been written."""
    if not tile.is_written():
        missing = tile.state.size - int(np.count_nonzero(tile.state))
        raise UninitializedError(
            f"{name} has {missing} unwritten elements of {tile.state.size}; expected "
            "all written; fresh memory holds no value; memset or load it first"
        )


def written(name: str, tile: Tile, row: int) -> None:
    """One row of an operand has been written."""
    if not tile.storage.complete and not tile.state[row].all():
        raise UninitializedError(
            f"{name} has unwritten elements in row {row}; expected all written; fresh "
            "memory holds no value; memset or load it first"
        )


def refuse_memory(name: str, found: str, expected: str, who: str) -> None:
    """Say which port is missing."""
    raise PlacementError(
        f"{name} has memory {found}; expected {expected}; {who} has no other port "
        "there; copy it with tensor_copy first, or choose another engine"
    )


def refuse_width(name: str, dtype: np.dtype, expected: str) -> None:
    """Say which element widths the hardware handles."""
    raise DTypeError(
        f"{name} has dtype {dtype.name}, {dtype.itemsize} bytes; expected {expected} "
        "bytes per element; the dma transposes no other width; cast it, or use "
        "nc_transpose"
    )


def generation(least: int, what: str, spec: Spec) -> None:
    """Refuse what an older core does not have."""
    if spec.generation < least:
        raise MachineError(
            f"spec has {spec.name}; expected generation {least} or later; it has no "
            f"{what}"
        )
