"""State every number of the simulated machine together with its source (chapter 15).

Sources: *arch guides* are the public NeuronCore-v2, -v3 and -v4 architecture
guides of the AWS Neuron SDK (release 2.32); *isa docs* its ``nki.isa``
reference; *isa docs 2.26* the last release that printed a cost formula per
instruction; *dma guides* its DMA overview and DMA bandwidth guide. A source that
begins with *ours* marks a modeling choice of this book, not a published number.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import NamedTuple

__all__ = ["GIB", "KIB", "MIN_CYCLES", "NC_V2", "NC_V3", "NC_V4", "Spec", "SpecRow"]

#: Cycles that the smallest instruction takes, MIN_II in the cost formulas.
MIN_CYCLES = 64
KIB = 1024
GIB = 1024**3


def _number(unit: str, source: str, default: object = None) -> object:
    """Declare one field of the spec with its unit and source."""
    meta = {"unit": unit, "source": source}
    if default is None:
        return field(metadata=meta)
    return field(default=default, metadata=meta)


class SpecRow(NamedTuple):
    """One line of the table of numbers."""

    name: str
    value: object
    unit: str
    source: str


_GUIDES = "arch guides, memory and engine tables"
_COST = "isa docs 2.26, cost formulas"
_DMA = "dma guides"


@dataclass(frozen=True, kw_only=True)
class Spec:
    """The limits and rates of one NeuronCore generation.

    Frozen: derive a variant with :func:`dataclasses.replace`. :meth:`rows` lists
    every number with its unit and source.

    Examples
    --------
    >>> NC_V3.sbuf_bytes_per_partition // 1024
    224
    >>> NC_V3.clock_ghz["tensor"]
    2.4
    """

    name: str = _number("", _GUIDES)
    generation: int = _number("", _GUIDES)
    partitions: int = _number("", _GUIDES, 128)
    sbuf_bytes_per_partition: int = _number("B", _GUIDES)
    psum_banks: int = _number("", _GUIDES, 8)
    psum_bank_bytes: int = _number("B per partition", _GUIDES, 2 * KIB)
    hbm_bytes: int = _number("B per device", _GUIDES)
    hbm_bytes_per_ns: float = _number("B/ns per device", _GUIDES)
    cores_per_device: int = _number("", _GUIDES)
    stationary_max: int = _number("columns", "isa docs, nc_matmul", 128)
    moving_max: int = _number("columns", "isa docs, nc_matmul", 512)
    vector_transpose_max: int = _number("rows, columns", "isa docs, nc_transpose", 32)
    sbuf_elements_max: int = _number(
        "elements per partition and instruction", "arch guide v2", 64 * KIB
    )
    psum_elements_max: int = _number(
        "elements per partition and instruction", "arch guide v2", 4 * KIB
    )
    pattern_dims_max: int = _number("free axes", "arch guide v2, access patterns", 4)
    clock_tensor: float = _number("GHz", _GUIDES)
    clock_vector: float = _number("GHz", _GUIDES)
    clock_scalar: float = _number("GHz", _GUIDES)
    clock_gpsimd: float = _number("GHz", _GUIDES)
    min_cycles: int = _number("cycles", _COST + " (MIN_II)", MIN_CYCLES)
    dependent_cycles: int = _number(
        "cycles",
        "ours, after arch guide v2: about 100 cycles more when an instruction waits "
        "for the one before it",
        100,
    )
    dma_engines: int = _number("per core", _GUIDES, 16)
    dma_partitions_per_engine: int = _number("", _DMA, 8)
    dma_bytes_per_ns: float = _number("B/ns per engine, measured", _DMA)
    dma_latency_ns: float = _number("ns, setup and semaphore", _DMA, 1300.0)
    dma_half_run_bytes: int = _number(
        "B",
        "ours, fitted to the dma guides: a descriptor run of b bytes moves at "
        "b / (b + 256) of the rate",
        256,
    )
    dma_transpose_hbm: float = _number("of the copy rate", "arch guide v3", 0.9)
    dma_transpose_sbuf: float = _number("of the copy rate", "arch guide v3", 0.5)

    @property
    def clock_ghz(self) -> dict[str, float]:
        """Clock of each compute engine, GHz (cycles per nanosecond)."""
        return {
            "tensor": self.clock_tensor,
            "vector": self.clock_vector,
            "scalar": self.clock_scalar,
            "gpsimd": self.clock_gpsimd,
        }

    @property
    def psum_bytes_per_partition(self) -> int:
        """All accumulation banks of one partition, bytes."""
        return self.psum_banks * self.psum_bank_bytes

    def peak_flops_per_ns(self, itemsize: int = 2) -> float:
        """Multiply-adds of the full array, two flop each; float32 takes four passes."""
        passes = 4 if itemsize == 4 else 1
        return 2 * self.partitions * self.stationary_max * self.clock_tensor / passes

    def dma_peak_bytes_per_ns(self) -> float:
        """Bytes per nanosecond of all DMA engines of one core."""
        return self.dma_engines * self.dma_bytes_per_ns

    def rows(self) -> Iterator[SpecRow]:
        """List every number with its unit and source."""
        for f in fields(self):
            yield SpecRow(f.name, getattr(self, f.name), *f.metadata.values())


NC_V2 = Spec(
    name="NeuronCore-v2",
    generation=2,
    sbuf_bytes_per_partition=192 * KIB,
    hbm_bytes=32 * GIB,
    hbm_bytes_per_ns=820.0,
    cores_per_device=2,
    clock_tensor=2.8,
    clock_vector=1.12,
    clock_scalar=1.4,
    clock_gpsimd=1.4,
    dma_bytes_per_ns=17.0,
)
NC_V3 = Spec(
    name="NeuronCore-v3",
    generation=3,
    sbuf_bytes_per_partition=224 * KIB,
    hbm_bytes=96 * GIB,
    hbm_bytes_per_ns=2900.0,
    cores_per_device=8,
    clock_tensor=2.4,
    clock_vector=0.96,
    clock_scalar=1.2,
    clock_gpsimd=1.2,
    dma_bytes_per_ns=23.0,
)
NC_V4 = Spec(
    name="NeuronCore-v4",
    generation=4,
    sbuf_bytes_per_partition=256 * KIB,
    hbm_bytes=144 * GIB,
    hbm_bytes_per_ns=4700.0,
    cores_per_device=8,
    moving_max=4096,
    clock_tensor=2.4,
    clock_vector=1.2,
    clock_scalar=1.2,
    clock_gpsimd=1.2,
    dma_bytes_per_ns=33.0,
)
