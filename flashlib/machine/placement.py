"""Check where an operand lies: memory, core, liveness, lanes (chapter 15)."""

from flashlib.errors import FreeSizeError, PlacementError
from flashlib.machine import rules
from flashlib.machine.tile import ON_CHIP, Tile

PSUM = frozenset({"psum"})


def check(issue, declared, name: str, tile: Tile) -> None:
    """Refuse an operand that the instruction or its engine cannot reach.

    ``issue`` is the execution in flight, ``declared`` its instruction.
    """
    storage = tile.storage
    memory = storage.memory
    allowed = declared.memory.get(name, ON_CHIP)
    if memory not in allowed:
        raise PlacementError(
            f"{name} is in {memory}; expected {' or '.join(sorted(allowed))}; "
            f"{declared.name} cannot reach {memory} there; {_way_out(memory, allowed)}"
        )
    if storage.owner is not issue.machine.memories[memory]:
        _refuse_stranger(issue, name, tile)
    if tile.broadcast and name in declared.writes:
        raise FreeSizeError(
            f"{name} repeats elements; expected each element once; a write has one "
            "place per element; write to the tensor itself"
        )
    if not declared.lanes:
        return
    if memory == "psum" and issue.engine == "gpsimd":
        raise PlacementError(
            f"{name} is in psum; expected sbuf; the gpsimd engine has no port to psum; "
            "use another engine or copy with tensor_copy first"
        )
    if tile.start:
        rules.start_partition(name, tile)
    if tile.free_size > issue.spec.psum_elements_max or tile.array.ndim > 5:
        rules.free_size(name, tile, issue.spec)


def _refuse_stranger(issue, name: str, tile: Tile) -> None:
    if not tile.storage.live:
        raise PlacementError(
            f"{name} has been freed; expected a live tensor; its bytes may hold "
            "something else by now; allocate it in an outer scope"
        )
    raise PlacementError(
        f"{name} belongs to another core; expected {tile.memory} of core "
        f"{issue.machine.core}; cores share only hbm; exchange with sendrecv"
    )


def _way_out(memory: str, allowed: frozenset[str]) -> str:
    if memory == "hbm":
        return "load it with dma_copy first"
    if allowed == PSUM:
        return "allocate it with psum.alloc"
    return "copy it to sbuf with tensor_copy first"
