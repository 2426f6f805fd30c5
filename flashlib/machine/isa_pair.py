"""Instructions between the two cores of a pair: messages and a barrier (chapter 22).

Both cores run one program and meet at these points. A core whose partner never
comes is a deadlock, and is refused as one.
"""

import numpy as np

from flashlib.errors import FreeSizeError, MachineError
from flashlib.machine import rules
from flashlib.machine.indexing import whole, whole_numbers
from flashlib.machine.instruction import SBUF, Cost, Issue, Meaning, instruction
from flashlib.machine.isa_dma import DMA_COST
from flashlib.machine.tile import Tile

__all__ = ["GPSIMD_ELEMENTS", "core_barrier", "sendrecv"]

#: Elements per partition that the small messenger of the gpsimd engine carries.
GPSIMD_ELEMENTS = 256


def _partner(issue: Issue, what: str):
    """The pair this core belongs to."""
    rules.generation(3, f"pairs of cores, so no {what}; use NC_V3", issue.spec)
    if issue.machine.pair is None:
        raise MachineError(
            f"{what} has no partner on a single core; expected a pair (lnc=2); it "
            "meets the other core; run the program with CorePair"
        )
    return issue.machine.pair


@instruction(
    engines=("dma", "gpsimd"),
    choose=lambda values: "gpsimd" if values["dma_engine"] == "gpsimd_dma" else "dma",
    memory={"dst": SBUF, "src": SBUF},
    cost=DMA_COST,
    lanes=False,
    limits=(
        "generation 3 on, two cores; send_to and recv_from: the other core, 0 or 1",
        "src and dst: both in sbuf, one shape and type, the same on both cores",
        "gpsimd_dma: at most 256 elements of up to 4 bytes per partition",
        "partner that never comes: refused as a deadlock",
    ),
)
def sendrecv(
    issue: Issue,
    dst: Tile,
    src: Tile,
    send_to: int,
    recv_from: int,
    pipe_id: int,
    dma_engine: str = "dma",
) -> Meaning:
    """Send src to the other core and receive its src into dst."""
    pair = _partner(issue, "sendrecv")
    other = 1 - issue.machine.core
    for name, rank in (("send_to", send_to), ("recv_from", recv_from)):
        if whole(name, rank) != other:
            raise MachineError(
                f"{name} has {rank} on core {issue.machine.core}; expected {other}; a "
                "pair has cores 0 and 1 and a core writes to the other one; use 1 - "
                "core"
            )
    pipe_id = whole("pipe_id", pipe_id)
    _messenger(dma_engine, src)
    rules.same_partitions(src=src, dst=dst)
    if src.shape != dst.shape:
        raise FreeSizeError(
            f"dst has shape {dst.shape}; expected {src.shape} like src; both cores "
            "exchange one shape; reshape one of them"
        )
    rules.same_dtype("a message moves bits", src=src, dst=dst)
    issue.nbytes = src.nbytes
    issue.run_bytes = src.run_elements() * src.dtype.itemsize

    def received() -> np.ndarray:
        key = ("sendrecv", pipe_id)
        mine = np.array(src.array)
        theirs, issue.sync = pair.meet(issue.machine.core, key, mine)
        return theirs

    return received


def _messenger(dma_engine: str, src: Tile) -> None:
    """Check the name of the messenger and what it can carry."""
    if dma_engine not in ("dma", "gpsimd_dma"):
        raise MachineError(
            f"dma_engine has {dma_engine!r}; expected 'dma' or 'gpsimd_dma'; no other "
            "engine carries messages; leave it out for 'dma'"
        )
    if dma_engine == "gpsimd_dma" and src.free_size > GPSIMD_ELEMENTS:
        raise FreeSizeError(
            f"src has {src.free_size} elements per partition; expected at most "
            f"{GPSIMD_ELEMENTS}; gpsimd_dma carries 1,024 bytes of 4-byte elements, "
            "512 of 2, 256 of 1; split it or use dma_engine='dma'"
        )


@instruction(
    engines=("gpsimd", "vector", "scalar", "tensor"),
    memory={"data": frozenset({"hbm"})},
    writes=("data",),
    cost=Cost("no cycles of its own; waits for the other core", lambda r: 0.0, "ours"),
    lanes=False,
    limits=("generation 3 on, two cores; data in hbm; cores: (0, 1)",),
)
def core_barrier(issue: Issue, data: Tile, cores: tuple[int, int] = (0, 1)) -> Meaning:
    """Wait until both cores are here: what they wrote to data is then visible."""
    pair = _partner(issue, "core_barrier")
    if whole_numbers("cores", cores, MachineError) != (0, 1):
        raise MachineError(
            f"cores has {cores}; expected (0, 1); a barrier joins the two cores of a "
            "pair; leave it out"
        )
    issue.nbytes = 0

    def waited() -> dict:
        _, issue.sync = pair.meet(issue.machine.core, ("core_barrier",), None)
        return {}

    return waited
