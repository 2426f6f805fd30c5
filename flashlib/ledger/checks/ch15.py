"""Check what is claimed about the machine and its operands (chapter 15)."""

from collections.abc import Callable
from functools import partial

import numpy as np

from flashlib.errors import BankError, MachineError, PartitionError
from flashlib.ledger.rows import Finding
from flashlib.machine import Machine
from flashlib.machine.dtypes import BFLOAT16
from flashlib.machine.memory import Memory
from flashlib.machine.trace import Trace
from flashlib.programs import decode_tile


def _decode(seq_k: int, n_heads: int, width: int) -> Trace:
    rng = np.random.default_rng(15)
    shapes = (1, n_heads, width), (seq_k, 1, width), (seq_k, 1, width)
    return decode_tile(*(rng.standard_normal(s).astype(BFLOAT16) for s in shapes)).trace


def _largest(error: type[MachineError], attempt: Callable[[int], object]) -> int:
    """Count up until a size is refused for the reason in question."""
    size = 1
    while True:
        try:
            attempt(size)
        except error:
            return size - 1
        size += 1


def partitions_and_banks() -> Finding:
    """Find the height of both memories and the width of a bank by trying."""
    m = Machine()

    def allocate(memory: Memory, partitions: int) -> None:
        with memory.scope():
            memory.alloc((partitions, 1))

    heights = [
        _largest(PartitionError, partial(allocate, memory))
        for memory in (m.sbuf, m.psum)
    ]
    one = m.sbuf.put(np.ones((1, 512), np.float32))
    room = m.psum.alloc((1, 1024))

    def multiply(end: int) -> None:
        window = room[:, max(end - 512, 0) : end]
        m.isa.nc_matmul(window, one[:, :1], one[:, : window.free_size])

    bank = 4 * _largest(BankError, multiply)
    return Finding.of(
        heights == [128, 128] and bank == 2048,
        f"SBUF takes {heights[0]} partitions and PSUM {heights[1]} and both refuse one "
        f"more; products may end at byte {bank} of a partition, and the first that "
        "reaches beyond it crosses into the next bank and is refused",
    )


def operand_contract() -> Finding:
    """Read the shapes of the three products off the trace of one decode call."""
    d, keys, heads = 64, 128, 8
    shapes = {}
    for record in _decode(keys, heads, d).records:
        if record.op == "nc_matmul":
            still, moving = record.read("stationary"), record.read("moving")
            shapes[record.step] = still.shape, moving.shape, record.writes[0].shape
    expected = {
        "mm1": ((d, keys), (d, heads), (keys, heads)),
        "sum": ((keys, heads), (keys, 1), (heads, 1)),
        "mm2": ((keys, d), (keys, heads), (d, heads)),
    }
    lines = "; ".join(
        f"{step} {list(a)} still, {list(b)} moving, {list(c)} out"
        for step, (a, b, c) in shapes.items()
    )
    return Finding.of(
        shapes == expected,
        f"with {keys} keys of width {d} and {heads} heads: {lines}; all three contract "
        "over the partitions of both operands",
    )


def four_things() -> Finding:
    """Look for the four parts one by one, each in a run."""
    one, eight = _decode(256, 1, 64), _decode(256, 8, 64)
    scores = next(r for r in eight if (r.step, r.op) == ("mm1", "nc_matmul"))
    sideways = scores.writes[0].shape == (128, 8)
    cache = [t.bytes(step="k_load") + t.bytes(step="v_load") for t in (one, eight)]
    flag = next(r for r in eight if r.op == "tensor_copy_predicated").read("predicate")
    layouts = _layouts_agree()
    found = {
        "scores with keys on partitions": sideways,
        "flat and paged keys equal bit for bit, with an append on chip": layouts,
        f"{cache[0]:,} bytes of cache for 1 head and {cache[1]:,} for 8": cache[0]
        == cache[1],
        f"a mask of {flag.dtype.name} flags": flag.dtype == np.uint8,
    }
    return Finding.of(
        all(found.values()),
        f"{sum(found.values())} of {len(found)} stand: {'; '.join(found)}",
    )


def _layouts_agree() -> bool:
    """Bring the same keys on chip from a flat and from a paged cache, and append."""
    rng, m = np.random.default_rng(5), Machine()
    rows = rng.standard_normal((128, 64)).astype(BFLOAT16)
    table = rng.permutation(200)[:128]
    pages = np.zeros((200, 64), BFLOAT16)
    pages[table] = rows
    flat, paged = m.hbm.put(rows), m.hbm.put(pages)
    direct = m.isa.dma_transpose(m.sbuf.alloc((64, 128), BFLOAT16), flat)
    index = m.sbuf.put(table.astype(np.int32)[:, None])
    source = paged.ap([[64, 128], [1, 64]], vector_offset=index, indirect_dim=0)
    gathered = m.isa.dma_copy(m.sbuf.alloc((128, 64), BFLOAT16), source)
    turned = m.isa.nc_transpose(m.psum.alloc((64, 128), BFLOAT16), gathered)
    same = np.array_equal(direct.numpy(), turned.numpy())
    new = m.hbm.put(rng.standard_normal((64, 1)).astype(BFLOAT16))
    m.isa.dma_copy(direct[:, 127:], new)
    kept = np.array_equal(flat.numpy(), rows)
    return same and kept and np.array_equal(direct.numpy()[:, 127:], new.numpy())
