"""Check where an operand lies: memory, core, liveness, lanes (chapter 15)."""

from typing import TYPE_CHECKING

from flashlib.errors import FreeSizeError, PlacementError
from flashlib.machine import rules
from flashlib.machine.tile import ON_CHIP, Tile

if TYPE_CHECKING:
    from flashlib.machine.instruction import Instruction, Issue

__all__ = ["check"]


def check(issue: "Issue", declared: "Instruction", name: str, tile: Tile) -> None:
    """Refuse an operand that the instruction or its engine cannot reach.

    ``issue`` is the execution in flight, ``declared`` its instruction.
    """
    storage = tile.storage
    memory = storage.memory
    allowed = declared.memory.get(name, ON_CHIP)
    if memory not in allowed:
        way_out = _way_out(memory, allowed, name in declared.writes)
        raise PlacementError(
            f"{name} has memory {memory}; expected {' or '.join(sorted(allowed))}; "
            f"{declared.name} cannot reach {memory} there; {way_out}"
        )
    if storage.owner is not issue.machine.memories[memory]:
        _refuse_stranger(issue, name, tile)
    if tile.broadcast and name in declared.writes:
        raise FreeSizeError(
            f"{name} has elements that repeat; expected each element once; a write has "
            "one place per element; write to the tensor itself"
        )
    if not declared.lanes:
        return
    if memory == "psum" and issue.engine == "gpsimd":
        raise PlacementError(
            f"{name} has memory psum; expected sbuf; the gpsimd engine has no port to "
            "psum; use another engine or copy with tensor_copy first"
        )
    if tile.start:
        rules.start_partition(name, tile)
    if tile.free_size > issue.spec.psum_elements_max or tile.array.ndim > 5:
        rules.free_size(name, tile, issue.spec)


def _refuse_stranger(issue: "Issue", name: str, tile: Tile) -> None:
    if not tile.storage.live:
        raise PlacementError(
            f"{name} has been freed; expected a live tensor; its bytes may hold "
            "something else by now; allocate it in an outer scope"
        )
    raise PlacementError(
        f"{name} has memory of another core; expected {tile.memory} of core "
        f"{issue.machine.core}; cores share only hbm; exchange with sendrecv"
    )


def _way_out(memory: str, allowed: frozenset[str], written: bool) -> str:
    if memory == "hbm":
        if written:
            return "write to sbuf and store it with dma_copy"
        return "load it with dma_copy first"
    if len(allowed) == 1 and "sbuf" not in allowed:
        return f"allocate it with {min(allowed)}.alloc"
    if written:
        return "write to sbuf and copy it with tensor_copy"
    return "copy it to sbuf with tensor_copy first"
