"""The numbers of the three generations, with sources, and what follows from them."""

import dataclasses

import pytest

from flashlib.machine import NC_V2, NC_V3, NC_V4

TABLE = {
    # spec: sbuf KiB, HBM GiB, HBM B/ns, PE, DVE, ACT, Pool GHz, DMA B/ns
    NC_V2: (192, 32, 820, 2.8, 1.12, 1.4, 1.4, 17),
    NC_V3: (224, 96, 2900, 2.4, 0.96, 1.2, 1.2, 23),
    NC_V4: (256, 144, 4700, 2.4, 1.2, 1.2, 1.2, 33),
}


@pytest.mark.parametrize("spec", TABLE, ids=lambda s: s.name)
def test_published_numbers(spec):
    sbuf, hbm, rate, pe, dve, act, pool, dma = TABLE[spec]
    assert spec.sbuf_bytes_per_partition == sbuf * 1024
    assert spec.hbm_bytes == hbm * 2**30
    assert spec.hbm_bytes_per_ns == rate
    assert spec.clock_ghz == {
        "tensor": pe,
        "vector": dve,
        "scalar": act,
        "gpsimd": pool,
    }
    assert spec.dma_bytes_per_ns == dma
    assert (spec.partitions, spec.psum_banks, spec.psum_bank_bytes) == (128, 8, 2048)
    assert spec.stationary_max == 128
    assert spec.moving_max == (4096 if spec is NC_V4 else 512)
    # 24, 28 and 32 MiB of SBUF, 2 MiB of PSUM
    assert (
        spec.sbuf_bytes_per_partition * 128 == {192: 24, 224: 28, 256: 32}[sbuf] << 20
    )
    assert spec.psum_bytes_per_partition * 128 == 2 << 20


def test_every_number_has_a_source_and_is_frozen():
    for row in NC_V3.rows():
        assert row.source, row
    assert {r.name for r in NC_V3.rows()} == {f.name for f in dataclasses.fields(NC_V3)}
    ours = [r.name for r in NC_V3.rows() if r.source.startswith("ours")]
    assert ours == ["dependent_cycles", "dma_half_run_bytes"]
    with pytest.raises(dataclasses.FrozenInstanceError):
        NC_V3.partitions = 256
    assert hash(NC_V3) == hash(dataclasses.replace(NC_V3))


def test_peaks_that_follow():
    # 128 * 128 * 2 * 2.4 GHz = 78.6 Tflop/s; float32 takes four passes
    assert NC_V3.peak_flops_per_ns() == pytest.approx(78643.2)
    assert NC_V3.peak_flops_per_ns(itemsize=4) == pytest.approx(78643.2 / 4)
    assert NC_V3.dma_peak_bytes_per_ns() == 368
    # about one eighth of the HBM of a device with eight cores
    assert NC_V3.hbm_bytes_per_ns / NC_V3.cores_per_device == pytest.approx(
        368, rel=0.02
    )
